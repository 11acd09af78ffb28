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
MORE = {
    "convit_tiny": 224,
    "crossvit_9_240": 240,
    "efficientformerv2_s0": 224,
    "efficientvit_m0": 224,
    "fastvit_t8": 64,
    "gcvit_xxtiny": 224,
    "inception_next_atto": 64,
    "mambaout_femto": 64,
    "nf_regnet_b0": 64,
    "repvit_m0_9": 64,
    "resnest14d": 64,
    "visformer_tiny": 224,
    "xcit_nano_12_p16_224": 224,
    "poolformerv2_s12": 64,
    "eva02_tiny_patch14_224": 224,
    "coat_lite_tiny": 224,
    "tiny_vit_5m_224": 224,
    "hgnetv2_b0": 64,
    "starnet_s1": 64,
    "focalnet_tiny_srf": 64,
}
"""More classifiers and the sides of their images."""
BY_DYNAMO = ("vit_tiny_patch16_224", "resnet10t", "edgenext_xx_small", "levit_128s", "lcnet_035")


def classifier(name: str, side: int = 64) -> Make:
    """A classifier for two batch sizes."""

    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        model = timm.create_model(name, pretrained=False, num_classes=7, exportable=True, **KINDS.get(name, {}))
        return spread(model), [{"image": image(n, side)} for n in (2, 3)]

    return make


for other in BY_DYNAMO:
    add(RECIPES, f"timm_{other}", classifier(other))
for kind in KINDS:
    add(RECIPES, f"timm_{kind}_script", classifier(kind), dynamo=False)
for name, side in MORE.items():
    add(RECIPES, f"timm_{name}_script", classifier(name, side), dynamo=False)
for name in ("fastvit_t8", "starnet_s1"):
    add(RECIPES, f"timm_{name}", classifier(name, MORE[name]))
