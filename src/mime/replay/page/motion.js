// Where everything is at a time: fields over time, and frames that follow them.
//   T_world_frame = T_world_parent · pose · turn(axis, angle) · slide(axis, distance)
// All in double precision; three.js keeps matrices in plain arrays.
import { Matrix4, Quaternion, Vector3 } from "three";
import { realNumbers } from "./codec.js";

export class Motion {
  constructor(scene, block) {
    this.time = scene.time ? realNumbers(block, scene.time) : new Float64Array([0]);
    this.members = scene.members || 1;
    this.member = 0;
    this.fields = new Map();
    for (const field of scene.fields || []) {
      this.fields.set(field.name, { ...field, values: realNumbers(block, field.table) });
    }
    this.frames = scene.frames;
    this.index = new Map(scene.frames.map((frame, i) => [frame.name, i]));
    this.frames.forEach((frame) => {
      frame.above = frame.parent ? this.index.get(frame.parent) : -1;
    });
    this.sliders = scene.joints ? new Map([["q", scene.joints.map((joint) => joint.value)]]) : null;
    this.setTime(this.time[0]);
  }

  get begin() {
    return this.time[0];
  }

  get end() {
    return this.time[this.time.length - 1];
  }

  // The sample before t, and how far it is to the next.
  setTime(t) {
    const time = this.time;
    this.t = Math.min(Math.max(t, this.begin), this.end);
    let low = 0;
    let high = time.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (time[middle] <= this.t) low = middle;
      else high = middle;
    }
    if (time.length > 1 && this.t >= time[high]) low = high;
    this.sample = low;
    const next = Math.min(low + 1, time.length - 1);
    this.part = next > low ? (this.t - time[low]) / (time[next] - time[low]) : 0;
  }

  // A number of a field at a sample, whole: `at` beyond the end of one that does not change is its only one.
  raw(name, index, member, sample) {
    const field = this.fields.get(name);
    if (!field) return 0;
    const m = field.members > 1 ? member : 0;
    const s = Math.min(sample, field.samples - 1);
    return field.values[(m * field.samples + s) * field.size + index];
  }

  has(value) {
    return Boolean(value) && (this.fields.has(value.field) || Boolean(this.sliders));
  }

  // scale · field[index] + offset, between samples on a straight line.
  read(value, member = this.member, sample = this.sample, part = this.part, step = 0) {
    const index = (value.index || 0) + step;
    let x;
    if (this.sliders) {
      x = this.sliders.get(value.field)[index];
    } else {
      x = this.raw(value.field, index, member, sample);
      if (part > 0) x += part * (this.raw(value.field, index, member, sample + 1) - x);
    }
    return (value.scale ?? 1) * x + (value.offset ?? 0);
  }

  // The matrix of every frame in the world.
  matrices(member = this.member, sample = this.sample, part = this.part) {
    const found = [];
    for (const frame of this.frames) {
      const local = this.local(frame, member, sample, part);
      found.push(frame.above < 0 ? local : local.premultiply(found[frame.above]));
    }
    return found;
  }

  // Of one frame only, at one sample.
  matrix(index, member, sample, part = 0) {
    const found = new Matrix4();
    for (let i = index; i >= 0; i = this.frames[i].above) {
      found.premultiply(this.local(this.frames[i], member, sample, part));
    }
    return found;
  }

  local(frame, member, sample, part) {
    let p = frame.pose || [0, 0, 0, 1, 0, 0, 0];
    if (frame.follow && this.has(frame.follow)) {
      const count = frame.planar ? 3 : 7;
      const x = [];
      for (let i = 0; i < count; i++) x.push(this.read(frame.follow, member, sample, part, i));
      p = frame.planar ? [x[0], x[1], 0, Math.cos(x[2] / 2), 0, 0, Math.sin(x[2] / 2)] : x;
    }
    if (frame.place && this.has(frame.place)) {
      p = [0, 1, 2].map((i) => this.read(frame.place, member, sample, part, i)).concat(p.slice(3));
    }
    if (frame.orient && this.has(frame.orient)) {
      p = p.slice(0, 3).concat([0, 1, 2, 3].map((i) => this.read(frame.orient, member, sample, part, i)));
    }
    const T = poseMatrix(p);
    const axis = new Vector3(...(frame.axis || [0, 0, 1]));
    if (frame.turn && this.has(frame.turn)) {
      const q = this.read(frame.turn, member, sample, part);
      T.multiply(new Matrix4().makeRotationAxis(axis, q));
    }
    if (frame.slide && this.has(frame.slide)) {
      const d = axis.multiplyScalar(this.read(frame.slide, member, sample, part));
      T.multiply(new Matrix4().makeTranslation(d.x, d.y, d.z));
    }
    return T;
  }
}

// Of [x y z qw qx qy qz].
export function poseMatrix(p) {
  const q = new Quaternion(p[4], p[5], p[6], p[3]).normalize();
  return new Matrix4().compose(new Vector3(p[0], p[1], p[2]), q, new Vector3(1, 1, 1));
}
