; Kernels as the handler and Python call them.
;
;   void kernel(ptr args, ptr results, ptr workspace, i64 first, i64 last, i64 members)
;
; A record, in words: 0 next record, 1 uses, 2 key, 3 kernel, 4 lanes, 5 bytes of workspace,
;                     6 most members for one thread, 7 least members of a block
; A job, in words:    0 holders, 1 next block, 2 blocks done, 3 blocks, 4 members of a block,
;                     5 members, 6 kernel, 7 bytes of workspace, 8 args, 9 results, 10 ... pointers
;
; ffi.py fills in @@yield@@, which gives way to other threads, @@data@@, the word of a NumPy array
; that points to its data, and the two functions of a processor (denormals_*.ll): @keep_denormals
; gives the mode of its arithmetic as it was, and @set_mode brings that back.

@records = internal global ptr null
@lock = internal global i32 0

declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @@@yield@@()
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

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

define internal void @set(ptr %base, i64 %index, i64 %value) alwaysinline {
  %at = getelementptr i64, ptr %base, i64 %index
  store i64 %value, ptr %at
  ret void
}

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
  %key.at = getelementptr i64, ptr %at, i64 2
  %its = load i64, ptr %key.at
  %same = icmp eq i64 %its, %key
  br i1 %same, label %hold, label %on
on:
  %next = load ptr, ptr %at
  br label %look
hold:
  %uses.at = getelementptr i64, ptr %at, i64 1
  %before = atomicrmw add ptr %uses.at, i64 1 seq_cst
  br label %done
done:
  call void @let_go()
  ret ptr %at
}

define void @release(ptr %record) {
  %uses.at = getelementptr i64, ptr %record, i64 1
  %before = atomicrmw sub ptr %uses.at, i64 1 seq_cst
  ret void
}

define i64 @uses(ptr %record) {
  %uses.at = getelementptr i64, ptr %record, i64 1
  %uses = load atomic i64, ptr %uses.at seq_cst, align 8
  ret i64 %uses
}

; ---- members `first` to `last`: denormal numbers are kept, also in XLA's threads, which flush them

@@denormals@@

define internal void @compute(ptr %kernel, ptr %args, ptr %results, ptr %workspace,
                              i64 %first, i64 %last, i64 %members) {
  %mode = call i64 @keep_denormals()
  call void %kernel(ptr %args, ptr %results, ptr %workspace, i64 %first, i64 %last, i64 %members)
  call void @set_mode(i64 %mode)
  ret void
}

; ---- one thread

; False: out of memory.
define internal i1 @alone(ptr %record, ptr %args, ptr %results, i64 %members) {
  %any = icmp sgt i64 %members, 0
  br i1 %any, label %begin, label %nothing
begin:
  %kernel = call ptr @field(ptr %record, i64 3)
  %bytes = call i64 @word(ptr %record, i64 5)
  %raw = call ptr @borrow(i64 %bytes)
  %ok = call i1 @has(ptr %raw, i64 %bytes)
  br i1 %ok, label %run, label %end
run:
  %workspace = call ptr @aligned(ptr %raw)
  call void @compute(ptr %kernel, ptr %args, ptr %results, ptr %workspace,
                     i64 0, i64 %members, i64 %members)
  call void @free(ptr %raw)
  br label %end
end:
  ret i1 %ok
nothing:
  ret i1 true
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

; ---- a job: blocks of members that several threads take from a counter
; Whoever holds it may come late: it then finds no block left and touches the job only, which the
; last holder frees.

; Null when one thread is as good. Some four blocks per thread, each a multiple of the lanes.
define ptr @job(ptr %record, ptr %args, i64 %n.args, ptr %results, i64 %n.results,
                i64 %members, i64 %threads) {
  %quarters = shl i64 %threads, 2
  %share = sdiv i64 %members, %quarters
  %least = call i64 @word(ptr %record, i64 7)
  %lanes = call i64 @word(ptr %record, i64 4)
  %larger = call i64 @llvm.smax.i64(i64 %share, i64 %least)
  %odd = srem i64 %larger, %lanes
  %even = sub i64 %larger, %odd
  %block = call i64 @llvm.smax.i64(i64 %even, i64 %lanes)
  %members.up = add i64 %members, %block
  %members.up1 = sub i64 %members.up, 1
  %blocks = sdiv i64 %members.up1, %block
  %holders = call i64 @llvm.smin.i64(i64 %blocks, i64 %threads)
  %several = icmp sgt i64 %holders, 1
  br i1 %several, label %make, label %none
make:
  %pointers = add i64 %n.args, %n.results
  %words = add i64 %pointers, 10
  %bytes = shl i64 %words, 3
  %job = call ptr @malloc(i64 %bytes)
  %poor = icmp eq ptr %job, null
  br i1 %poor, label %none, label %fill
fill:
  %own.args = getelementptr i64, ptr %job, i64 10
  %own.results = getelementptr ptr, ptr %own.args, i64 %n.args
  %args.bytes = shl i64 %n.args, 3
  %results.bytes = shl i64 %n.results, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %own.args, ptr %args, i64 %args.bytes, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %own.results, ptr %results, i64 %results.bytes, i1 false)
  %kernel = call i64 @word(ptr %record, i64 3)
  %workspace = call i64 @word(ptr %record, i64 5)
  %args.word = ptrtoint ptr %own.args to i64
  %results.word = ptrtoint ptr %own.results to i64
  call void @set(ptr %job, i64 0, i64 %holders)
  call void @set(ptr %job, i64 1, i64 0)
  call void @set(ptr %job, i64 2, i64 0)
  call void @set(ptr %job, i64 3, i64 %blocks)
  call void @set(ptr %job, i64 4, i64 %block)
  call void @set(ptr %job, i64 5, i64 %members)
  call void @set(ptr %job, i64 6, i64 %kernel)
  call void @set(ptr %job, i64 7, i64 %workspace)
  call void @set(ptr %job, i64 8, i64 %args.word)
  call void @set(ptr %job, i64 9, i64 %results.word)
  ret ptr %job
none:
  ret ptr null
}

define void @help(ptr %job) { ; XLA's task: what is left of the blocks
  %next.at = getelementptr i64, ptr %job, i64 1
  %next = load atomic i64, ptr %next.at monotonic, align 8
  %blocks = call i64 @word(ptr %job, i64 3)
  %late = icmp sge i64 %next, %blocks
  br i1 %late, label %end, label %begin
begin:
  %bytes = call i64 @word(ptr %job, i64 7)
  %raw = call ptr @borrow(i64 %bytes)
  %ok = call i1 @has(ptr %raw, i64 %bytes)
  br i1 %ok, label %run, label %end
run:
  %workspace = call ptr @aligned(ptr %raw)
  call void @work(ptr %job, ptr %workspace)
  call void @free(ptr %raw)
  br label %end
end:
  call void @leave(ptr %job)
  ret void
}

; The caller: its share, then the end of the blocks that others have begun. False: out of memory.
define i1 @lead(ptr %job) {
  %bytes = call i64 @word(ptr %job, i64 7)
  %blocks = call i64 @word(ptr %job, i64 3)
  %done.at = getelementptr i64, ptr %job, i64 2
  %next.at = getelementptr i64, ptr %job, i64 1
  %raw = call ptr @borrow(i64 %bytes)
  %ok = call i1 @has(ptr %raw, i64 %bytes)
  br i1 %ok, label %run, label %poor
run:
  %workspace = call ptr @aligned(ptr %raw)
  call void @work(ptr %job, ptr %workspace)
  call void @free(ptr %raw)
  br label %wait
poor: ; blocks that nobody has begun stay undone
  %begun = atomicrmw xchg ptr %next.at, i64 %blocks seq_cst
  %taken = call i64 @llvm.smin.i64(i64 %begun, i64 %blocks)
  br label %wait
wait:
  %wanted = phi i64 [ %blocks, %run ], [ %taken, %poor ], [ %wanted, %again ]
  %spins = phi i64 [ 0, %run ], [ 0, %poor ], [ %spins1, %again ]
  %done = load atomic i64, ptr %done.at acquire, align 8
  %all = icmp sge i64 %done, %wanted
  br i1 %all, label %end, label %more
more:
  %spins1 = add i64 %spins, 1
  %long = icmp sgt i64 %spins1, 500
  br i1 %long, label %yield, label %again
yield:
  call i32 @@@yield@@()
  br label %again
again:
  br label %wait
end:
  call void @leave(ptr %job)
  ret i1 %ok
}

define internal void @work(ptr %job, ptr %workspace) {
entry:
  %next.at = getelementptr i64, ptr %job, i64 1
  %done.at = getelementptr i64, ptr %job, i64 2
  %blocks = call i64 @word(ptr %job, i64 3)
  %block = call i64 @word(ptr %job, i64 4)
  %members = call i64 @word(ptr %job, i64 5)
  %kernel = call ptr @field(ptr %job, i64 6)
  %args = call ptr @field(ptr %job, i64 8)
  %results = call ptr @field(ptr %job, i64 9)
  br label %take
take:
  %mine = atomicrmw add ptr %next.at, i64 1 seq_cst
  %left = icmp slt i64 %mine, %blocks
  br i1 %left, label %run, label %end
run:
  %first = mul i64 %mine, %block
  %beyond = add i64 %first, %block
  %last = call i64 @llvm.smin.i64(i64 %beyond, i64 %members)
  call void @compute(ptr %kernel, ptr %args, ptr %results, ptr %workspace,
                     i64 %first, i64 %last, i64 %members)
  %before = atomicrmw add ptr %done.at, i64 1 release
  br label %take
end:
  ret void
}

define void @leave(ptr %job) {
  %before = atomicrmw sub ptr %job, i64 1 seq_cst
  %last = icmp eq i64 %before, 1
  br i1 %last, label %free, label %end
free:
  call void @free(ptr %job)
  br label %end
end:
  ret void
}

; ---- from Python: { record, members, n of args, n of results, NumPy arrays ... } in words

define i1 @direct(ptr %call) {
  %record = call ptr @field(ptr %call, i64 0)
  %members = call i64 @word(ptr %call, i64 1)
  %n.args = call i64 @word(ptr %call, i64 2)
  %pointers = call i64 @pointers(ptr %call)
  %args = alloca ptr, i64 %pointers
  %results = getelementptr ptr, ptr %args, i64 %n.args
  call void @addresses(ptr %call, ptr %args)
  %ok = call i1 @alone(ptr %record, ptr %args, ptr %results, i64 %members)
  ret i1 %ok
}

define ptr @direct_job(ptr %call, i64 %threads) {
  %record = call ptr @field(ptr %call, i64 0)
  %members = call i64 @word(ptr %call, i64 1)
  %n.args = call i64 @word(ptr %call, i64 2)
  %n.results = call i64 @word(ptr %call, i64 3)
  %pointers = call i64 @pointers(ptr %call)
  %args = alloca ptr, i64 %pointers
  %results = getelementptr ptr, ptr %args, i64 %n.args
  call void @addresses(ptr %call, ptr %args)
  %job = call ptr @job(ptr %record, ptr %args, i64 %n.args, ptr %results, i64 %n.results,
                       i64 %members, i64 %threads)
  ret ptr %job
}

define internal i64 @pointers(ptr %call) {
  %n.args = call i64 @word(ptr %call, i64 2)
  %n.results = call i64 @word(ptr %call, i64 3)
  %pointers = add i64 %n.args, %n.results
  ret i64 %pointers
}

define internal void @addresses(ptr %call, ptr %to) { ; of the arrays' data
  %arrays = getelementptr ptr, ptr %call, i64 4
  %pointers = call i64 @pointers(ptr %call)
  call void @gather(ptr %arrays, ptr %to, i64 %pointers, i64 @@data@@)
  ret void
}
