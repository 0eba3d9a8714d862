; MXCSR: bit 6 takes denormal operands for zero, bit 15 makes denormal results zero.

declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define internal i64 @keep_denormals() alwaysinline {
  %at = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  %mode = load i32, ptr %at
  %kept = and i32 %mode, -32833
  store i32 %kept, ptr %at
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  %wide = zext i32 %mode to i64
  ret i64 %wide
}

define internal void @set_mode(i64 %wide) alwaysinline {
  %at = alloca i32
  %mode = trunc i64 %wide to i32
  store i32 %mode, ptr %at
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  ret void
}
