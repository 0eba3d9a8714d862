; One call from Python, with a tuple of NumPy arrays as it comes: looked at here, in nanoseconds.
;
; A pattern, in words: 0 record, 1 entries of the tuple, 2 type of arrays, 3 their dtype, 4 None;
;                      then for each entry: -1 where anything may stand, -2 where None must,
;                      else the number of axes and their lengths
;
; Of a NumPy array, from the word @@data@@ on: data, number of axes (32 bits), lengths, strides,
; base, dtype, flags (32 bits; 257: in C's order and aligned). Its type stands in the word before.
; ffi.py fills in the numbers, and looks at an array whether they are right.

; False, and nothing is done, where the entries are others than the pattern's or memory is short.
define i1 @straight(ptr %pattern, ptr %tuple, ptr %result) {
entry:
  %record = call ptr @field(ptr %pattern, i64 0)
  %n = call i64 @word(ptr %pattern, i64 1)
  %size = call i64 @word(ptr %tuple, i64 @@size@@)
  %args = alloca ptr, i64 %n
  %results = alloca ptr
  %items = getelementptr i64, ptr %tuple, i64 @@items@@
  %same.size = icmp eq i64 %size, %n
  br i1 %same.size, label %next, label %other
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %on ]
  %at = phi i64 [ 5, %entry ], [ %at.next, %on ]
  %k = phi i64 [ 0, %entry ], [ %k.next, %on ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %look, label %run
look:
  %i1 = add i64 %i, 1
  %at1 = add i64 %at, 1
  %axes = call i64 @word(ptr %pattern, i64 %at)
  %object = call ptr @field(ptr %items, i64 %i)
  %is.array = icmp sge i64 %axes, 0
  br i1 %is.array, label %array, label %no.array
no.array:
  %any = icmp eq i64 %axes, -1
  %none = call i64 @word(ptr %pattern, i64 4)
  %address = ptrtoint ptr %object to i64
  %is.none = icmp eq i64 %address, %none
  %fits = or i1 %any, %is.none
  br i1 %fits, label %on, label %other
array:
  %type = call i64 @word(ptr %object, i64 @@type@@)
  %type.wanted = call i64 @word(ptr %pattern, i64 2)
  %same.type = icmp eq i64 %type, %type.wanted
  br i1 %same.type, label %inside, label %other
inside:
  %dtype = call i64 @word(ptr %object, i64 @@dtype@@)
  %dtype.wanted = call i64 @word(ptr %pattern, i64 3)
  %flags.word = call i64 @word(ptr %object, i64 @@flags@@)
  %flags = and i64 %flags.word, 257
  %axes.word = call i64 @word(ptr %object, i64 @@axes@@)
  %axes.here = and i64 %axes.word, 4294967295
  %same.dtype = icmp eq i64 %dtype, %dtype.wanted
  %plain = icmp eq i64 %flags, 257
  %same.axes = icmp eq i64 %axes.here, %axes
  %good = and i1 %same.dtype, %plain
  %better = and i1 %good, %same.axes
  br i1 %better, label %lengths, label %other
lengths:
  %data = call ptr @field(ptr %object, i64 @@data@@)
  %data.at = getelementptr ptr, ptr %args, i64 %k
  store ptr %data, ptr %data.at
  %k1 = add i64 %k, 1
  %at.end = add i64 %at1, %axes
  %shape = call ptr @field(ptr %object, i64 @@lengths@@)
  br label %axis
axis:
  %a = phi i64 [ 0, %lengths ], [ %a1, %length ]
  %more.axes = icmp ult i64 %a, %axes
  br i1 %more.axes, label %length, label %on
length:
  %a1 = add i64 %a, 1
  %wanted.at = add i64 %at1, %a
  %here = call i64 @word(ptr %shape, i64 %a)
  %wanted = call i64 @word(ptr %pattern, i64 %wanted.at)
  %same = icmp eq i64 %here, %wanted
  br i1 %same, label %axis, label %other
on:
  %at.next = phi i64 [ %at1, %no.array ], [ %at.end, %axis ]
  %k.next = phi i64 [ %k, %no.array ], [ %k1, %axis ]
  br label %next
run:
  %place = call ptr @field(ptr %result, i64 @@data@@)
  store ptr %place, ptr %results
  %ok = call i1 @alone(ptr %record, ptr %args, ptr %results, i64 1)
  ret i1 %ok
other:
  ret i1 false
}
