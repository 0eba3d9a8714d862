"""Small kernels in LLVM IR, y = a·x + b, as the compiler would write them."""

import itertools

from mime.native.ffi import Entry
from mime.native.machine import compile_ir

LANES = 4
WORKSPACE = 64
TEXT = """
{declarations}
define void @kernel(ptr %args, ptr %results, ptr %workspace, i64 %first, i64 %last, i64 %members) {{
entry:
  %x = load ptr, ptr %args
  %y = load ptr, ptr %results
  br label %check
check:
  %i = phi i64 [ %first, %entry ], [ %i4, %four ]
  %i4 = add i64 %i, 4
  %whole = icmp sle i64 %i4, %last
  br i1 %whole, label %four, label %rest
four:
  {calls}
  %x4.at = getelementptr double, ptr %x, i64 %i
  %x4 = load <4 x double>, ptr %x4.at, align 8
  store <4 x double> %x4, ptr %workspace, align 64 ; a workspace off its line of 64 bytes crashes
  %again4 = load volatile <4 x double>, ptr %workspace, align 64
  %ax4 = fmul <4 x double> %again4, splat (double {a})
  %y4 = fadd <4 x double> %ax4, splat (double {b})
  %y4.at = getelementptr double, ptr %y, i64 %i
  store <4 x double> %y4, ptr %y4.at, align 8
  br label %check
rest:
  %j = phi i64 [ %i, %check ], [ %j1, %one ]
  %more = icmp slt i64 %j, %last
  br i1 %more, label %one, label %done
one:
  %x1.at = getelementptr double, ptr %x, i64 %j
  %x1 = load double, ptr %x1.at
  %ax1 = fmul double %x1, {a}
  %y1 = fadd double %ax1, {b}
  %y1.at = getelementptr double, ptr %y, i64 %j
  store double %y1, ptr %y1.at
  %j1 = add i64 %j, 1
  br label %rest
done:
  ret void
}}
"""
NAPS = "declare i32 @usleep(i32)", "call i32 @usleep(i32 500)"
"""Half a millisecond for every four members."""
SIGNS = (
    "declare i32 @usleep(i32)\ndeclare i64 @pthread_self()",
    """call i32 @usleep(i32 500)
  %me = call i64 @pthread_self()
  %second = getelementptr ptr, ptr %results, i64 1
  %who = load ptr, ptr %second
  %who.at = getelementptr i64, ptr %who, i64 %i
  store i64 %me, ptr %who.at""",
)
"""The same, and the thread's number for every first of four members, in a second result."""
_keys = itertools.count(1)


def affine(a=2.0, b=1.0, cost_ns=1.0, key=None, besides=("", "")):
    """An entry of y = a·x + b; `cost_ns` decides what goes to several threads."""
    declarations, calls = besides
    text = TEXT.format(a=float(a), b=float(b), declarations=declarations, calls=calls)
    code = compile_ir(text, ["kernel"])
    key = next(_keys) if key is None else key
    return Entry(code.address("kernel"), LANES, WORKSPACE, cost_ns, key, code)
