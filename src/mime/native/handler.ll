; XLA's door to all kernels (layouts: xla/ffi/api/c_api.h in jax.ffi.include_dir()).
;
; instantiate: once per call site of an executable: finds the kernel by its key and holds it until
;              XLA deletes the executable
; execute:     all members at once, or in blocks that the caller and XLA's threads take

%State = type { i64, ptr, ptr, i32, ptr, ptr } ; arguments of State_Set and State_Get

@type_id = global i64 0
@type_info = global { i64, ptr, ptr } { i64 24, ptr null, ptr @release }
@lost = internal constant [38 x i8] c"kernel 0000000000000000 is not loaded\00"
@no_memory = internal constant [30 x i8] c"no memory for a kernel's work\00"
@digits = internal constant [16 x i8] c"0123456789abcdef"

; ---- XLA's call frame, by words

define internal i64 @attribute(ptr %frame, i64 %index) alwaysinline { ; sorted by name
  %all = call ptr @field(ptr %frame, i64 20)
  %scalar = call ptr @field(ptr %all, i64 %index)
  %at = call ptr @field(ptr %scalar, i64 1)
  %value = load i64, ptr %at
  ret i64 %value
}

define internal i1 @told_version(ptr %frame) { ; a frame may ask for metadata instead of work
  %extension = call ptr @field(ptr %frame, i64 1)
  %extended = icmp ne ptr %extension, null
  br i1 %extended, label %look, label %work
look:
  %kind.at = getelementptr ptr, ptr %extension, i64 1
  %kind = load i32, ptr %kind.at
  %asks = icmp eq i32 %kind, 1
  br i1 %asks, label %tell, label %work
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
  ret i1 true
work:
  ret i1 false
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
  %args = alloca %State
  store %State { i64 48, ptr null, ptr null, i32 0, ptr @type_id, ptr null }, ptr %args
  %ctx.at = getelementptr %State, ptr %args, i64 0, i32 2
  store ptr %ctx, ptr %ctx.at
  %state.at = getelementptr %State, ptr %args, i64 0, i32 5
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
  %query = alloca %State
  store %State { i64 48, ptr null, ptr null, i32 0, ptr @type_id, ptr null }, ptr %query
  %ctx.at = getelementptr %State, ptr %query, i64 0, i32 2
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
  %most = call i64 @word(ptr %record, i64 6)
  %little = icmp sle i64 %members, %most
  br i1 %little, label %single, label %split
single:
  %ok = call i1 @alone(ptr %record, ptr %args, ptr %results, i64 %members)
  br i1 %ok, label %fine, label %poor
split:
  %threads = call i64 @threads(ptr %api, ptr %ctx)
  %job = call ptr @job(ptr %record, ptr %args, i64 %n.args, ptr %results, i64 %n.results,
                       i64 %members, i64 %threads)
  %no.job = icmp eq ptr %job, null
  br i1 %no.job, label %single, label %share
share:
  %task = alloca { i64, ptr, ptr, ptr, ptr }
  store { i64, ptr, ptr, ptr, ptr } { i64 40, ptr null, ptr null, ptr @help, ptr null }, ptr %task
  %task.ctx = getelementptr ptr, ptr %task, i64 2
  store ptr %ctx, ptr %task.ctx
  %task.job = getelementptr ptr, ptr %task, i64 4
  store ptr %job, ptr %task.job
  %schedule = call ptr @field(ptr %api, i64 17)
  %holders = call i64 @word(ptr %job, i64 0)
  br label %next
next: ; each holder but this thread
  %holder = phi i64 [ 1, %share ], [ %holder1, %scheduled ]
  %all = icmp eq i64 %holder, %holders
  br i1 %all, label %lead, label %another
another:
  %refused = call ptr %schedule(ptr %task)
  %is.refused = icmp ne ptr %refused, null
  br i1 %is.refused, label %without, label %scheduled
without:
  call void @forget(ptr %api, ptr %refused)
  call void @leave(ptr %job)
  br label %scheduled
scheduled:
  %holder1 = add i64 %holder, 1
  br label %next
lead:
  %did = call i1 @lead(ptr %job)
  br i1 %did, label %fine, label %poor
poor:
  %none = call ptr @error(ptr %frame, ptr @no_memory, i32 8)
  ret ptr %none
fine:
  ret ptr null
}

define internal i64 @threads(ptr %api, ptr %ctx) { ; of XLA's pool
  %count = alloca i64
  store i64 1, ptr %count
  %args = alloca { i64, ptr, ptr, ptr }
  store { i64, ptr, ptr, ptr } { i64 32, ptr null, ptr null, ptr null }, ptr %args
  %ctx.at = getelementptr ptr, ptr %args, i64 2
  store ptr %ctx, ptr %ctx.at
  %count.at = getelementptr ptr, ptr %args, i64 3
  store ptr %count, ptr %count.at
  %ask = call ptr @field(ptr %api, i64 18)
  %error = call ptr %ask(ptr %args)
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %none, label %end
none:
  call void @forget(ptr %api, ptr %error)
  ret i64 1
end:
  %threads = load i64, ptr %count
  ret i64 %threads
}

define internal void @forget(ptr %api, ptr %error) {
  %args = alloca { i64, ptr, ptr }
  store { i64, ptr, ptr } { i64 24, ptr null, ptr null }, ptr %args
  %error.at = getelementptr ptr, ptr %args, i64 2
  store ptr %error, ptr %error.at
  %destroy = call ptr @field(ptr %api, i64 8)
  call void %destroy(ptr %args)
  ret void
}
