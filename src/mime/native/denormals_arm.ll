; FPCR: bit 24 flushes denormal operands and results to zero.

declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)

define internal i64 @keep_denormals() alwaysinline {
  %mode = call i64 @llvm.aarch64.get.fpcr()
  %kept = and i64 %mode, -16777217
  call void @llvm.aarch64.set.fpcr(i64 %kept)
  ret i64 %mode
}

define internal void @set_mode(i64 %mode) alwaysinline {
  call void @llvm.aarch64.set.fpcr(i64 %mode)
  ret void
}
