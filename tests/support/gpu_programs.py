"""The text of a program for a GPU, as XLA prints it, with each kind of place that launches kernels."""

TEXT = """HloModule jit_f, is_scheduled=true

%fused_add (p: s32[]) -> s32[] {
  %p = s32[] parameter(0)
  %c = s32[] constant(1)
  ROOT %add.1 = s32[] add(%p, %c)
}

%body.1 (arg.1: (s32[], f32[4])) -> (s32[], f32[4]) {
  %arg.1 = (s32[], f32[4]{0}) parameter(0)
  %g.0 = s32[] get-tuple-element(%arg.1), index=0
  %g.1 = f32[4]{0} get-tuple-element(%arg.1), index=1
  %loop_add_fusion = s32[] fusion(%g.0), kind=kLoop, calls=%fused_add
  %gemm.1 = (f32[4]{0}, s8[64]{0}) custom-call(%g.1, %g.1), custom_call_target="__cublas$gemm"
  %w.1 = f32[4]{0} get-tuple-element(%gemm.1), index=0
  ROOT %t = (s32[], /*index=1*/f32[4]{0}) tuple(%loop_add_fusion, %w.1)
}

%condition.1 (arg.2: (s32[], f32[4])) -> pred[] {
  %arg.2 = (s32[], f32[4]{0}) parameter(0)
  %g.2 = s32[] get-tuple-element(%arg.2), index=0
  ROOT %wrapped_compare = pred[] fusion(%g.2), kind=kLoop, calls=%wrapped_compare_computation
}

%command_buffer (p.4: f32[4]) -> f32[4] {
  %p.4 = f32[4]{0} parameter(0)
  %copy.1 = f32[4]{0} copy(%p.4)
  ROOT %copy.2 = f32[4]{0} copy(%copy.1)
}

%branch.1 (p.5: f32[4]) -> f32[4] {
  ROOT %p.5 = f32[4]{0} parameter(0)
}

%branch.2 (p.6: f32[4]) -> f32[4] {
  %p.6 = f32[4]{0} parameter(0)
  ROOT %sort.1 = f32[4]{0} sort(%p.6), dimensions={0}, to_apply=%compare
}

ENTRY %main.1 (x: f32[4], b: pred[]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %b = pred[] parameter(1)
  %space = s8[64]{0} custom-call(), custom_call_target="AllocateBuffer"
  %call = f32[4]{0} call(%x), to_apply=%command_buffer
  %c.0 = s32[] constant(0)
  %t.1 = (s32[], f32[4]{0}) tuple(%c.0, %call)
  %while.1 = (s32[], f32[4]{0}) while(%t.1), condition=%condition.1, body=%body.1KNOWN
  %g.3 = f32[4]{0} get-tuple-element(%while.1), index=1
  ROOT %cond = f32[4]{0} conditional(%b, %g.3, %g.3), branch_computations={%branch.1, %branch.2}
}
"""
OPEN, COUNTED = (TEXT.replace("KNOWN", text) for text in ("", ', backend_config={"known_trip_count":{"n":"9"}}'))
"""The program with a loop that ends where only the run knows, and with one of nine iterations."""
