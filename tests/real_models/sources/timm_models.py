"""Small models of timm, with random weights."""

import timm
from torch import Tensor, nn

from tests.real_models.recipe import Recipes
from tests.real_models.sources.exporting import Make, add, image
from tests.real_models.sources.torchvision_models import spread

RECIPES = Recipes()

KINDS = {
    "vit_tiny_patch16_224": {"img_size": 64, "depth": 2},
    "deit_tiny_patch16_224": {"img_size": 64, "depth": 2},
    "resnet10t": {},
    "mobilenetv4_conv_small_035": {},
    "efficientvit_b0": {},
    "ghostnet_050": {},
    "edgenext_xx_small": {},
    "mobileone_s0": {},
    "levit_128s": {"img_size": 64},
    "mobilevit_xxs": {},
    "lcnet_035": {},
}
BY_DYNAMO = ("vit_tiny_patch16_224", "resnet10t", "edgenext_xx_small", "levit_128s", "lcnet_035")


def classifier(name: str) -> Make:
    """A classifier for two batch sizes."""

    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        model = timm.create_model(name, pretrained=False, num_classes=7, exportable=True, **KINDS.get(name, {}))
        return spread(model), [{"image": image(2, 64)}, {"image": image(3, 64)}]

    return make


for other in BY_DYNAMO:
    add(RECIPES, f"timm_{other}", classifier(other))
for kind in KINDS:
    add(RECIPES, f"timm_{kind}_script", classifier(kind), dynamo=False)
