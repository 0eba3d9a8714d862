// A three.js object for each kind of shape, with what it does when the time moves. No node is
// known here: a new one is drawn by the shapes there are.
import * as THREE from "three";
import { Line2 } from "three/examples/jsm/lines/Line2.js";
import { LineGeometry } from "three/examples/jsm/lines/LineGeometry.js";
import { LineMaterial } from "three/examples/jsm/lines/LineMaterial.js";
import { wholeNumbers, realNumbers } from "./codec.js";
import { poseMatrix } from "./motion.js";

const PLAIN = [0.72, 0.74, 0.78, 1];
const RAMP = ["#4477aa", "#66b2a2", "#e8d24a", "#ee8833", "#cc2222"].map((c) => new THREE.Color(c));
export const RAMP_CSS = "linear-gradient(90deg, #4477aa, #66b2a2, #e8d24a, #ee8833, #cc2222)";

export function rampColour(x, into) {
  const s = Math.min(Math.max(x, 0), 1) * (RAMP.length - 1);
  const i = Math.min(Math.floor(s), RAMP.length - 2);
  return into.copy(RAMP[i]).lerp(RAMP[i + 1], s - i);
}

// Every shape, for the member shown in full or, with `ghost`, for another one.
export function buildShapes(scene, motion, block, ghost = null) {
  const meshes = (scene.meshes || []).map((mesh) => meshGeometry(mesh, block));
  const root = new THREE.Group();
  const built = [];
  for (const shape of scene.shapes) {
    const make = KINDS[shape.kind];
    if (!make || (ghost !== null && !["solid", "mesh", "prism"].includes(shape.kind))) continue;
    const item = make(shape, motion, meshes, ghost);
    item.shape = shape;
    item.frame = shape.frame ? motion.index.get(shape.frame) : -1;
    item.pose = shape.pose ? poseMatrix(shape.pose) : null;
    item.object.matrixAutoUpdate = false;
    item.object.visible = !shape.hidden;
    root.add(item.object);
    built.push(item);
  }
  return { root, built };
}

// Put everything where it belongs. `coloured`: scales tell the colours, else materials do.
export function placeShapes(built, motion, matrices, member, coloured) {
  for (const item of built) {
    if (!item.object.visible) continue;
    if (!item.inWorld) {
      const T = item.frame < 0 ? new THREE.Matrix4() : matrices[item.frame].clone();
      item.object.matrix.copy(item.pose ? T.multiply(item.pose) : T);
      if (item.stretch) item.object.matrix.multiply(item.stretch);
    }
    if (item.update) item.update(matrices, member);
    if (item.materials && item.shape.scale) paint(item, motion, member, coloured);
  }
}

function paint(item, motion, member, coloured) {
  const scale = item.shape.scale;
  if (!coloured || !motion.has(scale.value)) {
    item.materials.forEach((material, i) => material.color.copy(item.colours[i]));
    return;
  }
  let x = motion.read(scale.value, member);
  if (scale.magnitude) x = Math.abs(x);
  const part = (x - scale.low) / (scale.high - scale.low || 1);
  item.materials.forEach((material) => rampColour(part, material.color));
}

function solidMaterial(rgba, ghost, extra = {}) {
  const [r, g, b, a] = rgba || PLAIN;
  const alpha = ghost === null ? a : 0.22 * a;
  return new THREE.MeshStandardMaterial({
    color: new THREE.Color().setRGB(r, g, b, THREE.SRGBColorSpace),
    roughness: 0.65,
    metalness: 0.1,
    transparent: alpha < 1,
    opacity: alpha,
    depthWrite: alpha >= 1,
    ...extra,
  });
}

function solidObject(geometry, shape, ghost, extra) {
  const material = solidMaterial(shape.rgba, ghost, extra);
  const object = new THREE.Mesh(geometry, material);
  return { object, materials: [material], colours: [material.color.clone()] };
}

function lineObject(points, shape, width, dashed) {
  const [r, g, b, a] = shape.rgba || PLAIN;
  const material = new LineMaterial({
    color: new THREE.Color().setRGB(r, g, b, THREE.SRGBColorSpace).getHex(),
    linewidth: width,
    transparent: a < 1,
    opacity: a,
    dashed: Boolean(dashed),
  });
  const geometry = new LineGeometry();
  geometry.setPositions(points.flat());
  const line = new Line2(geometry, material);
  line.frustumCulled = false;
  if (dashed) {
    line.computeLineDistances();
    const ends = geometry.attributes.instanceDistanceEnd;
    const length = ends ? ends.getY(ends.count - 1) || 1 : 1;
    material.dashSize = material.gapSize = length / 60;
  }
  return line;
}

function meshGeometry(mesh, block) {
  const geometry = new THREE.BufferGeometry();
  const positions = Float32Array.from(realNumbers(block, mesh.vertices));
  geometry.setAttribute("position", new THREE.BufferAttribute(positions, 3));
  geometry.setIndex(new THREE.BufferAttribute(Uint32Array.from(wholeNumbers(block, mesh.triangles)), 1));
  if (!mesh.flat) geometry.computeVertexNormals();
  let start = 0;
  mesh.groups.forEach((group, i) => {
    geometry.addGroup(start, 3 * group.count, i);
    start += 3 * group.count;
  });
  geometry.userData = mesh;
  return geometry;
}

const KINDS = {
  solid(shape, motion, meshes, ghost) {
    const size = shape.size || [1, 1, 1];
    const form = shape.form || "box";
    let geometry;
    if (form === "box") geometry = new THREE.BoxGeometry(...size);
    else if (form === "sphere") geometry = new THREE.SphereGeometry(size[0], 32, 20);
    else if (form === "ellipsoid") geometry = new THREE.SphereGeometry(1, 32, 20).scale(...size);
    else if (form === "capsule") geometry = new THREE.CapsuleGeometry(size[0], size[1], 8, 24);
    else geometry = new THREE.CylinderGeometry(size[0], size[0], size[1], 36);
    // three.js has them along y, we along z.
    if (form === "cylinder" || form === "capsule") geometry.rotateX(Math.PI / 2);
    return solidObject(geometry, shape, ghost);
  },

  mesh(shape, motion, meshes, ghost) {
    const geometry = meshes[shape.mesh];
    const mirrored = shape.stretch && shape.stretch[0] * shape.stretch[1] * shape.stretch[2] < 0;
    const side = mirrored ? THREE.BackSide : THREE.DoubleSide;
    const { flat, groups } = geometry.userData;
    // The robot's file says one colour for all of it, or leaves it to the mesh's own.
    const colours = groups.map(({ rgb }) => shape.rgba || (rgb ? [...rgb, 1] : PLAIN));
    const materials = colours.map((rgba) => solidMaterial(rgba, ghost, { flatShading: flat, side }));
    const item = { object: new THREE.Mesh(geometry, materials), materials };
    item.colours = materials.map((material) => material.color.clone());
    if (shape.stretch) item.stretch = new THREE.Matrix4().makeScale(...shape.stretch);
    return item;
  },

  prism(shape, motion, meshes, ghost) {
    const outline = new THREE.Shape(shape.outline.map(([x, y]) => new THREE.Vector2(x, y)));
    const geometry = new THREE.ExtrudeGeometry(outline, { depth: shape.height, bevelEnabled: false });
    return solidObject(geometry, shape, ghost);
  },

  boxes(shape, motion) {
    const material = solidMaterial(shape.rgba, null);
    const count = shape.boxes.length;
    const object = new THREE.InstancedMesh(new THREE.BoxGeometry(1, 1, 1), material, count);
    object.frustumCulled = false;
    const T = new THREE.Matrix4();
    const standing = new Array(count).fill(null);
    const put = (i, stands) => {
      if (standing[i] === stands) return;
      standing[i] = stands;
      const [x, y, z, a, b, c] = shape.boxes[i];
      if (stands) T.makeScale(a, b, c).setPosition(x, y, z);
      else T.makeScale(0, 0, 0).setPosition(x, y, z);
      object.setMatrixAt(i, T);
      object.instanceMatrix.needsUpdate = true;
    };
    const known = shape.field && motion.fields.has(shape.field);
    for (let i = 0; i < count; i++) put(i, !shape.field);
    const update = (matrices, member) => {
      for (let i = 0; i < count; i++) {
        put(i, Math.round(motion.raw(shape.field, i, member, motion.sample)) === (shape.at ?? 1));
      }
    };
    return { object, update: known ? update : null };
  },

  line(shape) {
    return { object: lineObject(shape.points, shape, shape.dashed ? 2.5 : 4, shape.dashed) };
  },

  trail(shape, motion) {
    const object = new THREE.Group();
    const index = motion.index.get(shape.frame);
    const every = Math.max(1, Math.ceil(motion.time.length / 1500));
    let shownMember = null;
    let past = null;
    const update = (matrices, member) => {
      if (member !== shownMember) {
        shownMember = member;
        object.clear();
        const points = [];
        for (let s = 0; s < motion.time.length; s += every) {
          const e = motion.matrix(index, member, s).elements;
          points.push([e[12], e[13], e[14]]);
        }
        if (points.length < 2) points.push(points[0]);
        const ahead = lineObject(points, { rgba: fade(shape.rgba) }, 2, shape.dashed);
        past = shape.dashed ? null : lineObject(points, shape, 3, false);
        object.add(ahead);
        if (past) object.add(past);
      }
      if (past) past.geometry.instanceCount = Math.floor(motion.sample / every);
    };
    return { object, update, inWorld: true };
  },

  walk(shape, motion) {
    const object = new THREE.Group();
    let drawn = "";
    const update = (matrices, member) => {
      const moves = shape.count ? Math.round(motion.read(shape.count, member, motion.sample, 0)) : 0;
      const turns = [];
      for (let i = 0; i < Math.min(moves, shape.most); i++) {
        turns.push(Math.round(motion.raw(shape.field, i, member, motion.sample)));
      }
      const words = turns.join(" ");
      if (words === drawn) return;
      drawn = words;
      object.clear();
      const points = [[...shape.start]];
      for (const turn of turns) {
        const step = shape.steps[turn] || [0, 0, 0];
        points.push(points[points.length - 1].map((x, i) => x + step[i]));
      }
      if (points.length > 1) object.add(lineObject(points, shape, 5, false));
    };
    return { object, update: motion.fields.has(shape.field) ? update : null };
  },

  ray(shape, motion) {
    const object = lineObject([[0, 0, 0], [1, 0, 0]], shape, 2, false);
    const stretch = new THREE.Matrix4();
    const update = (matrices, member) => {
      const length = motion.read(shape.length, member);
      object.matrix.multiply(stretch.makeScale(Math.max(length, 1e-9), 1, 1));
    };
    return { object, update: motion.has(shape.length) ? update : () => object.matrix.makeScale(0, 0, 0) };
  },

  arrow(shape, motion) {
    const [r, g, b] = shape.rgba || PLAIN;
    const colour = new THREE.Color().setRGB(r, g, b, THREE.SRGBColorSpace);
    const object = new THREE.ArrowHelper(new THREE.Vector3(1, 0, 0), new THREE.Vector3(), 1, colour);
    const update = (matrices, member) => {
      const v = new THREE.Vector3(
        motion.read(shape.vector, member),
        motion.read(shape.vector, member, motion.sample, motion.part, 1),
        motion.read(shape.vector, member, motion.sample, motion.part, 2),
      );
      const at = matrices[motion.index.get(shape.frame)].clone();
      if (shape.pose) at.multiply(poseMatrix(shape.pose));
      const length = (shape.reach * v.length()) / (shape.largest || 1);
      object.children.forEach((child) => (child.visible = length > 1e-3 * shape.reach));
      if (length <= 1e-3 * shape.reach) return;
      object.setDirection(v.normalize());
      object.setLength(length, 0.25 * shape.reach * Math.min(1, length / (0.4 * shape.reach)), 0.1 * shape.reach);
      object.updateMatrix();
      object.matrix.setPosition(at.elements[12], at.elements[13], at.elements[14]);
    };
    return { object, update: motion.has(shape.vector) ? update : () => (object.visible = false), inWorld: true };
  },

  twist(shape, motion) {
    const material = solidMaterial(shape.rgba, null, { side: THREE.DoubleSide });
    const object = new THREE.Mesh(new THREE.BufferGeometry(), material);
    let drawn = null;
    const update = (matrices, member) => {
      const angle = shape.factor * motion.read(shape.angle, member);
      if (drawn !== null && Math.abs(angle - drawn) < 1e-3) return;
      drawn = angle;
      object.geometry.dispose();
      object.geometry = new THREE.RingGeometry(0.35 * shape.radius, shape.radius, 32, 1, 0, angle);
    };
    return { object, update: motion.has(shape.angle) ? update : null };
  },
};

function fade(rgba) {
  const [r, g, b, a] = rgba || PLAIN;
  return [r, g, b, 0.45 * a];
}

// Words that face the reader, drawn on a canvas: they are never markup.
function nameTag(words, size) {
  const canvas = document.createElement("canvas");
  const pen = canvas.getContext("2d");
  const font = "600 40px system-ui, sans-serif";
  pen.font = font;
  canvas.width = Math.ceil(pen.measureText(words).width) + 16;
  canvas.height = 56;
  pen.font = font;
  pen.lineWidth = 8;
  pen.strokeStyle = "rgba(255, 255, 255, 0.85)";
  pen.fillStyle = "#1c2330";
  pen.strokeText(words, 8, 42);
  pen.fillText(words, 8, 42);
  const map = new THREE.CanvasTexture(canvas);
  const tag = new THREE.Sprite(new THREE.SpriteMaterial({ map, depthTest: false, transparent: true }));
  tag.scale.set((0.26 * size * canvas.width) / canvas.height, 0.26 * size, 1);
  tag.renderOrder = 2;
  tag.center.set(0, 0);
  return tag;
}

export function frameAxes(motion, size) {
  const items = [];
  motion.frames.forEach((frame, i) => {
    if (!frame.shown) return;
    const object = new THREE.Group();
    const axes = new THREE.AxesHelper(size).setColors("#d62728", "#2ca02c", "#1f5fd0");
    axes.material.depthTest = false; // links hide their own frames
    axes.renderOrder = 1;
    object.add(axes, nameTag(frame.name.split("/").pop(), size));
    object.matrixAutoUpdate = false;
    object.visible = false;
    items.push({ object, index: i, name: frame.name });
  });
  return items;
}
