"""Every run as a page to watch: the robot in 3D beside its curves, at one time, in one file.

A run takes milliseconds, so nothing has to be watched while it happens: no server, no window, no
socket. A run leaves a page that replays it, and the page needs a browser and nothing else: it is
one file, it loads nothing, and it can be sent to whoever has never heard of MIME.

The story, from a node to the picture:

    core/drawing.py     a node declares what there is to see of it: frames that follow its fields,
                        shapes on the frames, colour scales. Plain data, in the node's own file.
    running/scene.py    the drawings of all nodes of a graph as one; a trajectory has it as
                        `trajectory.drawing`, and result files keep it.
    content.py          what goes into a page: which samples, which fields, which curves, and in
                        words what could not be drawn.
    robot.py            the same for a robot alone: a slider per joint in place of the time.
    meshes.py           files of triangles, by trimesh; quantised, thinned when they are too many.
    codec.py            the numbers, small: differences, planes of bytes, gzip, base64.
    page.py             all of it as one HTML file, and as a value that a notebook shows.
    page/               the page's own JavaScript and style, and the bundle with three.js and uPlot
                        that `tools/replay_bundle.py` makes of them. The page knows shapes, no
                        nodes: a new node adds nothing to it.
    motion.py, still.py the frames in NumPy, and a still picture or a film by matplotlib, for
                        where there is no browser.

`benchmarks/replay.py` says how large a page is, how long it takes to write, and to load.
"""
