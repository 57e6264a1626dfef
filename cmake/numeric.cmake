# Numeric sources: compiled once per precision and instruction set (see
# core/base/isa.h). Every other core/**/*.c is compiled once.
set(SINKLAB_NUMERIC
    core/attention/attend.c
    core/attention/attention_list.c
    core/attention/host.c
    core/attention/rope.c
    core/attention/weigh.c
    core/check/stage.c
    core/ops/activation.c
    core/ops/array_list.c
    core/ops/compare.c
    core/ops/concat.c
    core/ops/cumsum.c
    core/ops/draw.c
    core/ops/elementwise.c
    core/ops/gemm.c
    core/ops/index.c
    core/ops/layer_list.c
    core/ops/linear.c
    core/ops/loss.c
    core/ops/map.c
    core/ops/matmul.c
    core/ops/norm.c
    core/ops/reduce.c
    core/ops/softmax.c
    core/train/update.c
)
