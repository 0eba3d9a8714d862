; XLA's door to all kernels, in LLVM IR (layouts: xla/ffi/api/c_api.h in jax.ffi.include_dir()).
;
;   void kernel(ptr args, ptr results, ptr workspace, i64 first, i64 last, i64 members)
;
; instantiate: once per call site of an executable; finds the kernel by its key, holds it until XLA
;              deletes the executable
; execute:     members in one go, or in blocks: the caller and XLA's threads take them from a
;              counter; a thread that comes late finds none left
; direct:      the same kernels from Python, without XLA
;
; @@name@@ is filled in by ffi.py.

%Record = type { ptr, i64, i64, ptr, i64, i64, i64, i64 }
;                next, uses, key, kernel, lanes, workspace bytes, most members alone, least of a block
%Job = type { i64, i64, i64, i64, i64, i64, ptr, i64, ptr, ptr }
;             holders, next block, blocks done, blocks, block, members, kernel, workspace, args, results

@records = internal global ptr null
@lock = internal global i32 0
@type_id = global i64 0
@type_info = global { i64, ptr, ptr } { i64 24, ptr null, ptr @release }
@lost = internal constant [38 x i8] c"kernel 0000000000000000 is not loaded\00"
@no_memory = internal constant [32 x i8] c"no memory for a kernel's work  \00"
@digits = internal constant [16 x i8] c"0123456789abcdef"

declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @@@yield@@()

; ---- the records of all kernels: a list behind a lock that is held for nanoseconds

define internal void @acquire() {
  br label %try
try:
  %pair = cmpxchg ptr @lock, i32 0, i32 1 acquire monotonic
  %got = extractvalue { i32, i1 } %pair, 1
  br i1 %got, label %mine, label %again
again:
  call i32 @@@yield@@()
  br label %try
mine:
  ret void
}

define internal void @let_go() {
  store atomic i32 0, ptr @lock release, align 4
  ret void
}

define void @insert(ptr %record) {
  call void @acquire()
  %head = load ptr, ptr @records
  store ptr %head, ptr %record
  store ptr %record, ptr @records
  call void @let_go()
  ret void
}

define void @remove(ptr %record) {
entry:
  call void @acquire()
  br label %look
look:
  %link = phi ptr [ @records, %entry ], [ %at, %on ]
  %at = load ptr, ptr %link
  %end = icmp eq ptr %at, null
  br i1 %end, label %done, label %compare
compare:
  %same = icmp eq ptr %at, %record
  br i1 %same, label %unlink, label %on
on:
  br label %look
unlink:
  %next = load ptr, ptr %record
  store ptr %next, ptr %link
  br label %done
done:
  call void @let_go()
  ret void
}

define internal ptr @find(i64 %key) {
entry:
  call void @acquire()
  %head = load ptr, ptr @records
  br label %look
look:
  %at = phi ptr [ %head, %entry ], [ %next, %on ]
  %end = icmp eq ptr %at, null
  br i1 %end, label %done, label %compare
compare:
  %key.at = getelementptr %Record, ptr %at, i64 0, i32 2
  %its = load i64, ptr %key.at
  %same = icmp eq i64 %its, %key
  br i1 %same, label %hold, label %on
on:
  %next = load ptr, ptr %at
  br label %look
hold:
  %uses.at = getelementptr %Record, ptr %at, i64 0, i32 1
  %before = atomicrmw add ptr %uses.at, i64 1 seq_cst
  br label %done
done:
  call void @let_go()
  ret ptr %at
}

define void @release(ptr %record) {
  %uses.at = getelementptr %Record, ptr %record, i64 0, i32 1
  %before = atomicrmw sub ptr %uses.at, i64 1 seq_cst
  ret void
}

define i64 @uses(ptr %record) {
  %uses.at = getelementptr %Record, ptr %record, i64 0, i32 1
  %uses = load atomic i64, ptr %uses.at seq_cst, align 8
  ret i64 %uses
}

; ---- XLA's call frame, by words

define internal i64 @word(ptr %base, i64 %index) alwaysinline {
  %at = getelementptr i64, ptr %base, i64 %index
  %value = load i64, ptr %at
  ret i64 %value
}

define internal ptr @field(ptr %base, i64 %index) alwaysinline {
  %at = getelementptr ptr, ptr %base, i64 %index
  %value = load ptr, ptr %at
  ret ptr %value
}

define internal i64 @attribute(ptr %frame, i64 %index) alwaysinline { ; sorted by name
  %all = call ptr @field(ptr %frame, i64 20)
  %scalar = call ptr @field(ptr %all, i64 %index)
  %at = call ptr @field(ptr %scalar, i64 1)
  %value = load i64, ptr %at
  ret i64 %value
}

define internal i1 @told_version(ptr %frame) { ; a frame with an extension asks for metadata
  %extension = call ptr @field(ptr %frame, i64 1)
  %asks = icmp ne ptr %extension, null
  br i1 %asks, label %tell, label %end
tell:
  %metadata = call ptr @field(ptr %extension, i64 3)
  %version = getelementptr i32, ptr %metadata, i64 6
  store i32 0, ptr %version
  %minor = getelementptr i32, ptr %metadata, i64 7
  store i32 3, ptr %minor
  %traits = getelementptr i32, ptr %metadata, i64 8
  store i32 0, ptr %traits
  %state = getelementptr i64, ptr %metadata, i64 5
  %type = load i64, ptr @type_id
  store i64 %type, ptr %state
  br label %end
end:
  ret i1 %asks
}

define internal ptr @error(ptr %frame, ptr %message, i32 %code) {
  %args = alloca { i64, ptr, ptr, i32 }
  store { i64, ptr, ptr, i32 } { i64 28, ptr null, ptr null, i32 0 }, ptr %args
  %message.at = getelementptr { i64, ptr, ptr, i32 }, ptr %args, i64 0, i32 2
  store ptr %message, ptr %message.at
  %code.at = getelementptr { i64, ptr, ptr, i32 }, ptr %args, i64 0, i32 3
  store i32 %code, ptr %code.at
  %api = call ptr @field(ptr %frame, i64 2)
  %create = call ptr @field(ptr %api, i64 6)
  %error = call ptr %create(ptr %args)
  ret ptr %error
}

define internal ptr @not_loaded(ptr %frame, i64 %key) {
entry:
  %text = alloca [38 x i8]
  %blank = load [38 x i8], ptr @lost
  store [38 x i8] %blank, ptr %text
  br label %digit
digit:
  %place = phi i64 [ 22, %entry ], [ %before, %digit ]
  %rest = phi i64 [ %key, %entry ], [ %shifted, %digit ]
  %nibble = and i64 %rest, 15
  %glyph.at = getelementptr i8, ptr @digits, i64 %nibble
  %glyph = load i8, ptr %glyph.at
  %at = getelementptr i8, ptr %text, i64 %place
  store i8 %glyph, ptr %at
  %shifted = lshr i64 %rest, 4
  %before = sub i64 %place, 1
  %more = icmp uge i64 %before, 7
  br i1 %more, label %digit, label %done
done:
  %error = call ptr @error(ptr %frame, ptr %text, i32 5)
  ret ptr %error
}

; ---- stages

define ptr @instantiate(ptr %frame) {
  %told = call i1 @told_version(ptr %frame)
  br i1 %told, label %fine, label %look
look:
  %key = call i64 @attribute(ptr %frame, i64 0)
  %record = call ptr @find(i64 %key)
  %lost = icmp eq ptr %record, null
  br i1 %lost, label %missing, label %keep
missing:
  %not = call ptr @not_loaded(ptr %frame, i64 %key)
  ret ptr %not
keep:
  %ctx = call ptr @field(ptr %frame, i64 3)
  %args = alloca { i64, ptr, ptr, i32, ptr, ptr }
  store { i64, ptr, ptr, i32, ptr, ptr } { i64 48, ptr null, ptr null, i32 0, ptr @type_id, ptr null }, ptr %args
  %ctx.at = getelementptr { i64, ptr, ptr, i32, ptr, ptr }, ptr %args, i64 0, i32 2
  store ptr %ctx, ptr %ctx.at
  %state.at = getelementptr { i64, ptr, ptr, i32, ptr, ptr }, ptr %args, i64 0, i32 5
  store ptr %record, ptr %state.at
  %api = call ptr @field(ptr %frame, i64 2)
  %set = call ptr @field(ptr %api, i64 13)
  %error = call ptr %set(ptr %args)
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %undo, label %fine
undo:
  call void @release(ptr %record)
  ret ptr %error
fine:
  ret ptr null
}

define ptr @execute(ptr %frame) {
  %told = call i1 @told_version(ptr %frame)
  br i1 %told, label %fine, label %find
find:
  %ctx = call ptr @field(ptr %frame, i64 3)
  %api = call ptr @field(ptr %frame, i64 2)
  %query = alloca { i64, ptr, ptr, i32, ptr, ptr }
  store { i64, ptr, ptr, i32, ptr, ptr } { i64 48, ptr null, ptr null, i32 0, ptr @type_id, ptr null }, ptr %query
  %ctx.at = getelementptr { i64, ptr, ptr, i32, ptr, ptr }, ptr %query, i64 0, i32 2
  store ptr %ctx, ptr %ctx.at
  %get = call ptr @field(ptr %api, i64 14)
  %error = call ptr %get(ptr %query)
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %refuse, label %gather
refuse:
  ret ptr %error
gather:
  %record = call ptr @field(ptr %query, i64 5)
  %members = call i64 @attribute(ptr %frame, i64 1)
  %n.args = call i64 @word(ptr %frame, i64 7)
  %n.results = call i64 @word(ptr %frame, i64 12)
  %args = alloca ptr, i64 %n.args
  %results = alloca ptr, i64 %n.results
  %from.args = call ptr @field(ptr %frame, i64 9)
  %from.results = call ptr @field(ptr %frame, i64 14)
  call void @gather(ptr %from.args, ptr %args, i64 %n.args, i64 3)
  call void @gather(ptr %from.results, ptr %results, i64 %n.results, i64 3)
  %ok = call i1 @alone(ptr %record, ptr %args, ptr %results, i64 %members)
  br i1 %ok, label %fine, label %poor
poor:
  %none = call ptr @error(ptr %frame, ptr @no_memory, i32 8)
  ret ptr %none
fine:
  ret ptr null
}

define internal void @gather(ptr %from, ptr %to, i64 %n, i64 %word) { ; to[i] = from[i]->word
entry:
  %none = icmp eq i64 %n, 0
  br i1 %none, label %done, label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %object = call ptr @field(ptr %from, i64 %i)
  %data = call ptr @field(ptr %object, i64 %word)
  %at = getelementptr ptr, ptr %to, i64 %i
  store ptr %data, ptr %at
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %n
  br i1 %more, label %next, label %done
done:
  ret void
}

define internal i1 @alone(ptr %record, ptr %args, ptr %results, i64 %members) {
  %kernel = call ptr @field(ptr %record, i64 3)
  %bytes = call i64 @word(ptr %record, i64 5)
  %raw = call ptr @borrow(i64 %bytes)
  %ok = call i1 @has(ptr %raw, i64 %bytes)
  br i1 %ok, label %run, label %end
run:
  %workspace = call ptr @aligned(ptr %raw)
  call void %kernel(ptr %args, ptr %results, ptr %workspace, i64 0, i64 %members, i64 %members)
  call void @free(ptr %raw)
  br label %end
end:
  ret i1 %ok
}

; ---- workspaces, on lines of 64 bytes

define internal ptr @borrow(i64 %bytes) {
  %none = icmp eq i64 %bytes, 0
  br i1 %none, label %end, label %take
take:
  %room = add i64 %bytes, 64
  %raw = call ptr @malloc(i64 %room)
  ret ptr %raw
end:
  ret ptr null
}

define internal i1 @has(ptr %raw, i64 %bytes) alwaysinline {
  %none = icmp eq i64 %bytes, 0
  %got = icmp ne ptr %raw, null
  %ok = or i1 %none, %got
  ret i1 %ok
}

define internal ptr @aligned(ptr %raw) alwaysinline {
  %number = ptrtoint ptr %raw to i64
  %up = add i64 %number, 63
  %line = and i64 %up, -64
  %workspace = inttoptr i64 %line to ptr
  ret ptr %workspace
}
