#!/usr/bin/env bash
# What only a GPU can show, in under twelve minutes of one: the demo; addresses, arrays and precision; the tests; loops;
# and other systems on the same card.
#
# It needs this folder and a Python with jax (and its CUDA plugin), numpy and pytest; torch for the parts about its
# tensors. Each part has a time limit of its own, and writes what it finds at once, so that a run that is stopped loses
# nothing:
#
#     tests/gpu/run.sh                        # the results are in gpu-results/, the overview in gpu-results/overview.txt
#     OUT=/tmp/results WORKERS=16 tests/gpu/run.sh
#     PARTS="loops peers" tests/gpu/run.sh    # these parts only
#     DRY=1 tests/gpu/run.sh                  # the same on a CPU, with a few tests and one loop
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

out=${OUT:-gpu-results}
python=${PYTHON:-python3}
dry=${DRY:-}
workers=${WORKERS:-$([ -n "$dry" ] && echo 2 || nproc)}
selection=${TESTS:-tests/model/layers tests/compiler tests/gpu}
loops=() peers=()
if [ -n "$dry" ]; then
    export JAX_PLATFORMS=cpu
    selection=${TESTS:-tests/model/layers/test_bits.py tests/model/layers/test_fourier.py}
    loops=(--only "W4 " --samples 2) peers=(--only "W4 " --repetitions 3)
else
    export JAX_PLATFORMS=cuda,cpu  # without a GPU each part fails, instead of running on the CPU
fi
export PYTHONPATH=$PWD:${PYTHONPATH:-} PYTHONDONTWRITEBYTECODE=1 TF_CPP_MIN_LOG_LEVEL=1
export XLA_PYTHON_CLIENT_PREALLOCATE=false  # the processes share the card, with each other and with PyTorch
mkdir -p "$out"
overview=$out/overview.txt
failed=0

say() { echo "$*" | tee -a "$overview"; }

# part NAME SECONDS COMMAND...: its output is in NAME.txt
part() {
    local name=$1 limit=$2 began=$SECONDS status
    shift 2
    [[ -z ${PARTS:-} || " $PARTS " == *" $name "* ]] || return
    timeout -k 5 "$limit" "$@" >"$out/$name.txt" 2>&1
    status=$?
    case $status in
        0) say "$name: ok, $((SECONDS - began)) s" ;;
        124 | 137) say "$name: stopped after $((SECONDS - began)) s"; failed=1 ;;
        *) say "$name: FAILED with $status, $((SECONDS - began)) s"; tail -n 3 "$out/$name.txt" | tee -a "$overview"; failed=1 ;;
    esac
}

# module NAME SECONDS: python -m tests.gpu.NAME, if it is there
module() {
    if [ -f "tests/gpu/$1.py" ]; then part "$1" "$2" "$python" -m "tests.gpu.$1"; else say "$1: not there"; fi
}

# shard NUMBER: a part of the tests, in as many processes as it takes
shard() {
    local log=$out/tests/shard-$1.txt
    for _ in $(seq 30); do
        # shellcheck disable=SC2086
        "$python" -m pytest -p tests.gpu.shard --shard "$1/$workers" --results "$out/tests" -o addopts= -m "not slow" \
            -p no:benchmark -p no:cacheprovider -p no:xdist -p no:randomly -W ignore::pytest.PytestConfigWarning \
            --continue-on-collection-errors -q --tb=no $selection >>"$log" 2>&1
        "$python" tests/gpu/shard.py --is-finished "$out/tests/shard-$1.jsonl" && return
    done
}

shards() {
    # TF32 would hide everything else; tests of TF32 ask for it
    export JAX_DEFAULT_MATMUL_PRECISION=highest HYPOTHESIS_PROFILE=ci
    XLA_PYTHON_CLIENT_MEM_FRACTION=$(awk "BEGIN { printf \"%.3f\", 0.9 / $workers }")
    export XLA_PYTHON_CLIENT_MEM_FRACTION
    unset XLA_CLIENT_MEM_FRACTION  # JAX takes one of the two names
    local number
    for number in $(seq 0 $((workers - 1))); do shard "$number" & done
    wait
}

say "$(date -u +%FT%TZ) $(git rev-parse --short HEAD 2>/dev/null)"
part device 20 bash -c "nvidia-smi 2>/dev/null; '$python' -m netloop --version && '$python' -c '
import jax, numpy
print(jax.__version__, numpy.__version__, jax.devices(), jax.devices()[0].memory_stats())'"
part demo 40 "$python" -m netloop demo
module check_addresses 30
module check_arrays 30
module check_precision 30
mkdir -p "$out/tests"
export -f shard shards
export out python workers selection
part tests 180 bash -c shards
"$python" tests/gpu/shard.py "$out/tests" >"$out/tests.txt"
head -n 1 "$out/tests.txt" | tee -a "$overview"
part loops 130 "$python" -m tests.gpu.loops --results "$out/loops.jsonl" "${loops[@]}"
part peers 240 "$python" -m tests.gpu.peers --platform gpu --json "$out/peers.json" "${peers[@]}"
say "$SECONDS s in all"
exit "$failed"
