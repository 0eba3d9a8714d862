// A browser starts no Worker for a page that was opened from disk; the search needs one.
// There its script runs in a hidden frame instead. From a server nothing changes.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.send(Promise.resolve(), this, data);
      this.loaded = new Promise((resolve) => {
        const script = inside.document.createElement("script");
        script.onload = resolve;
        script.src = new URL(address, document.baseURI);
        inside.document.documentElement.append(script);
      });
    }

    // Both sides have their own copy of what is sent, as those of a Worker do.
    send(ready, receiver, data) {
      const event = new MessageEvent("message", { data: structuredClone(data) });
      ready.then(() => {
        if (receiver === this) this.onmessage?.(event);
        receiver.dispatchEvent(event);
      });
    }

    postMessage(data) {
      this.send(this.loaded, this.frame.contentWindow, data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
