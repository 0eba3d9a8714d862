// The page: one time for the scene and the plots. What it shows stands in the two blocks of data
// that page.py writes into it; every word of it reaches the page as text, never as markup.
import * as THREE from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
import { unpack } from "./codec.js";
import { Motion } from "./motion.js";
import { Plots } from "./plots.js";
import { RAMP_CSS, buildShapes, frameAxes, placeShapes } from "./shapes.js";

const SPEEDS = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10];
const byId = (id) => document.getElementById(id);

function element(tag, words = "", className = "") {
  const made = document.createElement(tag);
  made.textContent = words;
  if (className) made.className = className;
  return made;
}

class Replay {
  constructor(scene, block) {
    this.scene = scene;
    this.motion = new Motion(scene, block);
    this.playing = false;
    this.speed = 1;
    this.coloured = true;
    this.dirty = true;
    this.layers = new Map();
    document.body.classList.toggle("curves-only", !scene.shapes.length);
    document.title = scene.title;
    byId("title").textContent = scene.title;
    byId("about").textContent = scene.about || "";
    const full = byId("full");
    full.hidden = window.self === window.top || !document.fullscreenEnabled; // of use inside another page
    full.addEventListener("click", () => document.documentElement.requestFullscreen());
    this.makeView(block);
    this.makeLayers();
    this.makeNotes();
    if (scene.joints) this.makeSliders();
    else this.makeControls();
    this.plots = new Plots(byId("plots"), scene, this.motion, (t) => this.setTime(t));
    byId("hint").hidden = !this.plots.items.length;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", () => this.themeChanged());
    this.themeChanged();
    requestAnimationFrame((now) => this.tick(now));
  }

  makeView(block) {
    const place = byId("view");
    const canvas = document.createElement("canvas");
    place.append(canvas);
    try {
      this.renderer = new THREE.WebGLRenderer({ canvas, antialias: true, preserveDrawingBuffer: true });
      this.renderer.setPixelRatio(Math.min(devicePixelRatio, 2));
    } catch (error) {
      this.renderer = null; // the curves can be seen all the same
      document.body.classList.add("curves-only");
      tellFailure(`The scene cannot be drawn, as this browser has no WebGL (${error.message})`);
    }
    this.world = new THREE.Scene();
    this.camera = new THREE.PerspectiveCamera(40 /* degrees, from top to bottom */, 1, 0.001, 1000);
    this.camera.up.set(0, 0, 1);
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.addEventListener("change", () => (this.dirty = true));
    this.world.add(new THREE.HemisphereLight(0xffffff, 0x667788, 1.6));
    const sun = new THREE.DirectionalLight(0xffffff, 2.0);
    sun.position.set(2, -3, 5);
    this.world.add(sun);
    const { root, built } = buildShapes(this.scene, this.motion, block);
    this.built = built;
    this.world.add(root);
    this.ghosts = [];
    for (let member = 0; member < this.motion.members && this.motion.members > 1; member++) {
      const ghost = buildShapes(this.scene, this.motion, block, member);
      this.world.add(ghost.root);
      this.ghosts.push({ member, ...ghost });
    }
    this.axes = frameAxes(this.motion, 0.12 * this.scene.size);
    this.axes.forEach((item) => this.world.add(item.object));
    this.place();
    this.resize();
    this.frameView();
    new ResizeObserver(() => this.resize()).observe(place);
    place.addEventListener("dblclick", () => this.frameView());
  }

  // Look at all that there is, from above and one side.
  frameView() {
    const box = new THREE.Box3();
    this.world.updateMatrixWorld(true);
    for (const item of this.built) {
      if (!item.object.visible || ["arrow", "twist", "ray"].includes(item.shape.kind)) continue;
      box.union(new THREE.Box3().setFromObject(item.object));
    }
    if (box.isEmpty()) box.set(new THREE.Vector3(-0.1, -0.1, 0), new THREE.Vector3(0.1, 0.1, 0.1));
    const centre = box.getCenter(new THREE.Vector3());
    const radius = Math.max(0.5 * box.getSize(new THREE.Vector3()).length(), 1e-3);
    const flat = box.max.z - box.min.z < 0.2 * radius;
    const from = flat ? new THREE.Vector3(0, -0.9, 2) : new THREE.Vector3(1.3, -1.7, 0.9);
    const half = Math.atan(Math.tan(Math.PI / 9) * Math.min(1, this.camera.aspect));
    const distance = (0.95 * radius) / Math.sin(half);
    this.camera.position.copy(centre).addScaledVector(from.normalize(), distance);
    this.camera.near = distance / 500;
    this.camera.far = distance * 50;
    this.camera.updateProjectionMatrix();
    this.controls.target.copy(centre);
    this.controls.update();
    if (this.floor) this.world.remove(this.floor);
    // Squares of 1, 10, 100 ... mm or m, so that about ten of them are as wide as what is seen.
    const square = 10 ** Math.round(Math.log10(radius / 5));
    const count = 2 * Math.ceil((1.6 * radius) / square);
    this.floor = new THREE.GridHelper(count * square, count, 0x888888, 0x888888);
    this.floor.rotation.x = Math.PI / 2;
    const [x, y] = [centre.x, centre.y].map((c) => square * Math.round(c / square));
    this.floor.position.set(x, y, Math.min(box.min.z, 0) - 1e-3 * radius);
    this.floor.material.transparent = true;
    this.floor.material.opacity = 0.25;
    this.world.add(this.floor);
    this.dirty = true;
  }

  makeLayers() {
    const list = byId("layers");
    const toggle = (words, on, change) => {
      const label = element("label");
      const box = element("input");
      box.type = "checkbox";
      box.checked = on;
      box.addEventListener("change", () => {
        change(box.checked);
        this.dirty = true;
      });
      label.append(box, document.createTextNode(` ${words}`));
      list.append(label);
    };
    const layers = new Map();
    for (const item of this.built) {
      const name = item.shape.layer || "robot";
      if (!layers.has(name)) layers.set(name, []);
      layers.get(name).push(item);
    }
    layers.forEach((items, name) => {
      const on = !items[0].shape.hidden;
      const factor = items.map((item) => item.shape.factor).find((x) => x);
      const words = factor ? `${name} × ${factor}` : name;
      toggle(words, on, (shown) => items.forEach((item) => (item.object.visible = shown)));
    });
    if (this.axes.length) {
      toggle("frames", false, (on) => this.axes.forEach((item) => (item.object.visible = on)));
    }
    const scales = new Map();
    for (const { shape } of this.built) {
      if (shape.scale && this.motion.has(shape.scale.value) && !this.motion.sliders) {
        const found = scales.get(shape.scale.title) || [];
        scales.set(shape.scale.title, [...found, shape.scale]);
      }
    }
    if (scales.size) toggle("colours by value", true, (on) => (this.coloured = on));
    scales.forEach((found, title) => this.addScale(title, found));
    if (this.motion.members > 1) {
      const ghosts = (on) => this.ghosts.forEach((ghost) => (ghost.off = !on));
      toggle("other members", true, ghosts);
      const select = element("select");
      this.scene.memberNames.forEach((words, i) => {
        const option = element("option", words);
        option.value = i;
        select.append(option);
      });
      select.id = "member";
      select.addEventListener("change", () => this.setMember(Number(select.value)));
      list.append(select);
    }
  }

  addScale(title, found) {
    const box = element("div", "", "scale");
    const lows = [...new Set(found.map((scale) => scale.low))];
    const highs = [...new Set(found.map((scale) => scale.high))].sort((a, b) => a - b);
    const unit = found[0].unit;
    const digits = (x) => `${+x.toPrecision(3)}`;
    const most = highs.length > 1 ? `${digits(highs[0])} … ${digits(highs[highs.length - 1])}` : digits(highs[0]);
    const words = found.every((scale) => scale.limited) ? "limit" : "largest";
    const bar = element("span", "", "ramp");
    bar.style.background = RAMP_CSS;
    box.append(element("span", `${title}: ${digits(lows[0])}`), bar, element("span", `${most} ${unit} (${words})`));
    byId("scales").append(box);
  }

  makeNotes() {
    const list = byId("notes");
    for (const note of this.scene.notes || []) list.append(element("li", note));
    byId("notes-box").hidden = !list.children.length;
    byId("notes-box").open = list.children.length <= 3;
    const lines = byId("curves");
    for (const { shape } of this.built) {
      if (!shape.what || shape.hidden || !["trail", "line", "walk", "arrow", "twist"].includes(shape.kind)) continue;
      const entry = element("span", "", "key");
      const dot = element("i");
      const [r, g, b] = (shape.rgba || [0.5, 0.5, 0.5]).map((x) => Math.round(255 * x));
      dot.style.background = `rgb(${r}, ${g}, ${b})`;
      const more = shape.kind === "arrow" ? `, at most ${+shape.largest.toPrecision(3)} ${shape.unit}` : "";
      entry.append(dot, document.createTextNode(`${shape.what}${more}`));
      lines.append(entry);
    }
  }

  makeControls() {
    byId("controls").hidden = false;
    const speed = byId("speed");
    for (const x of SPEEDS) {
      const option = element("option", `${x} ×`);
      option.value = x;
      option.selected = x === 1;
      speed.append(option);
    }
    speed.addEventListener("change", () => (this.speed = Number(speed.value)));
    byId("play").addEventListener("click", () => this.toggle());
    const scrub = byId("scrub");
    scrub.min = this.motion.begin;
    scrub.max = this.motion.end;
    scrub.step = "any";
    scrub.addEventListener("input", () => this.setTime(Number(scrub.value)));
    document.addEventListener("keydown", (event) => {
      if (["INPUT", "SELECT", "BUTTON", "SUMMARY"].includes(event.target.tagName)) return;
      const second = event.shiftKey ? 0.1 : 0.01;
      const span = this.motion.end - this.motion.begin;
      if (event.key === " ") this.toggle();
      else if (event.key === "ArrowRight") this.setTime(this.motion.t + second * span);
      else if (event.key === "ArrowLeft") this.setTime(this.motion.t - second * span);
      else return;
      event.preventDefault();
    });
    this.showTime();
  }

  makeSliders() {
    const place = byId("sliders");
    place.hidden = false;
    const q = this.motion.sliders.get("q");
    this.scene.joints.forEach((joint, i) => {
      const row = element("label", "", "joint");
      const value = element("output");
      const slider = element("input");
      slider.type = "range";
      slider.min = joint.low;
      slider.max = joint.high;
      slider.step = "any";
      slider.value = joint.value;
      slider.id = `joint-${i}`;
      const tell = () => {
        const degrees = joint.unit === "rad" ? ` = ${((180 / Math.PI) * q[i]).toFixed(1)}°` : "";
        value.textContent = `${q[i].toFixed(4)} ${joint.unit}${degrees}`;
      };
      slider.addEventListener("input", () => {
        q[i] = Number(slider.value);
        tell();
        this.dirty = true;
      });
      joint.show = () => {
        slider.value = q[i];
        tell();
      };
      tell();
      row.append(element("span", joint.name), slider, value, element("small", joint.limits));
      place.append(row);
    });
    const table = byId("masses");
    for (const cells of this.scene.masses || []) {
      const row = table.insertRow();
      cells.forEach((words) => (row.insertCell().textContent = words));
    }
    byId("robot").hidden = !(this.scene.masses || []).length;
  }

  setJoint(index, value) {
    this.motion.sliders.get("q")[index] = value;
    this.scene.joints[index].show();
    this.dirty = true;
  }

  setTime(t) {
    this.motion.setTime(t);
    this.showTime();
    this.plots.followAll();
    this.dirty = true;
  }

  setMember(member) {
    this.motion.member = member;
    this.plots.memberChanged();
    this.setTime(this.motion.t);
  }

  showTime() {
    byId("scrub").value = this.motion.t;
    byId("clock").textContent = `${this.motion.t.toFixed(3)} s of ${+this.motion.end.toPrecision(6)} s`;
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.motion.t >= this.motion.end) this.setTime(this.motion.begin);
    this.playing = true;
    this.before = null;
    byId("play").textContent = "Pause";
  }

  pause() {
    this.playing = false;
    byId("play").textContent = "Play";
  }

  tick(now) {
    if (this.playing) {
      if (this.before !== null) this.setTime(this.motion.t + (this.speed * (now - this.before)) / 1000);
      this.before = now;
      if (this.motion.t >= this.motion.end) this.pause();
    }
    if (this.dirty) this.render();
    requestAnimationFrame((next) => this.tick(next));
  }

  place() {
    const { motion } = this;
    const matrices = motion.matrices();
    placeShapes(this.built, motion, matrices, motion.member, this.coloured);
    for (const ghost of this.ghosts) {
      ghost.root.visible = ghost.member !== motion.member && !ghost.off;
      if (ghost.root.visible) {
        placeShapes(ghost.built, motion, motion.matrices(ghost.member), ghost.member, this.coloured);
      }
    }
    this.axes.forEach((item) => item.object.matrix.copy(matrices[item.index]));
  }

  render() {
    this.dirty = false;
    this.place();
    if (this.renderer) this.renderer.render(this.world, this.camera);
  }

  resize() {
    const place = byId("view");
    const width = Math.max(place.clientWidth, 1);
    const height = Math.max(place.clientHeight, 1);
    if (this.renderer) this.renderer.setSize(width, height, false);
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    this.dirty = true;
  }

  themeChanged() {
    const paper = getComputedStyle(document.documentElement).getPropertyValue("--scene").trim();
    this.world.background = new THREE.Color(paper);
    this.plots.showAll();
    this.dirty = true;
  }
}

// What other pages and tests may ask of this one.
function handle(page) {
  const { motion } = page;
  return {
    get time() {
      return motion.t;
    },
    get playing() {
      return page.playing;
    },
    setTime: (t) => page.setTime(t),
    play: () => page.play(),
    pause: () => page.pause(),
    setJoint: (index, value) => page.setJoint(index, value),
    setMember: (member) => page.setMember(member),
    value: (field, index = 0) => motion.read({ field, index }),
    frames: () => motion.frames.map((frame) => frame.name),
    // Row by row, in the world.
    frame: (name) => {
      const T = motion.matrices()[motion.index.get(name)];
      return T.clone().transpose().elements;
    },
  };
}

function tellFailure(words) {
  byId("failure").textContent = words;
  byId("failure").hidden = false;
}

async function start() {
  const began = performance.now();
  try {
    const scene = JSON.parse(byId("scene").textContent);
    const block = await unpack(byId("numbers").textContent.trim());
    const page = new Replay(scene, block);
    page.render();
    window.mimeReplay = handle(page);
    window.mimeReplay.loadSeconds = (performance.now() - began) / 1000;
  } catch (error) {
    tellFailure(`This page could not be drawn: ${error.message}. It needs a browser of 2023 or later.`);
    throw error;
  }
}

start();
