"""Data-parallel training of a small neural network, with the standard library only.

Every rank is one process that srun started. The ranks meet at MASTER_ADDR:MASTER_PORT,
link up to a ring over TCP, and after each step sum their gradients with a ring all-reduce
(reduce-scatter, then all-gather), as NCCL or Gloo do. Each rank learns from its own share
of the data; all of them hold the same weights at every moment, which is checked.

The data are generated, not recorded: ten 8x8 glyphs of the digits, moved by up to one
pixel, dimmed and covered with noise. Sample i is a function of i alone, so no file has to
be shared between the nodes.

Read from the environment: SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, SLURM_JOB_ID,
SLURMD_NODENAME, SLURM_RESTART_COUNT, CUDA_VISIBLE_DEVICES, MASTER_ADDR, MASTER_PORT;
to try things out: TRAIN_EPOCHS (default 12) and TRAIN_FAIL=RANK@EPOCH, where that rank dies.
Written by rank 0: train-JOBID.ckpt, in the working directory. A requeued job goes on from it.

Exit status: 0 learned; 1 the loss did not fall or the accuracy is too low; 2 the
environment is incomplete; 3 gradients or weights differ between ranks; 4 a rank is missing.
"""

import json
import math
import os
import random
import select
import socket
import struct
import sys
import time
import zlib
from array import array
from operator import mul

PIXELS, HIDDEN, CLASSES = 64, 16, 10
TRAIN, TEST, BATCH = 960, 240, 96  # samples, over all ranks
RATE, MOMENTUM = 0.5, 0.8
PATIENCE = 60.0  # seconds to wait for another rank

GLYPHS = """
.####... ...##... .####... .####... ....##.. ######.. ..###... ######.. .####... .####...
##..##.. ..###... ##..##.. ##..##.. ...###.. ##...... .##..... ##..##.. ##..##.. ##..##..
##.###.. ...##... ....##.. ....##.. ..####.. #####... ##...... ....##.. ##..##.. ##..##..
######.. ...##... ...##... ..###... .##.##.. ....##.. #####... ...##... .####... .#####..
###.##.. ...##... ..##.... ....##.. ######.. ....##.. ##..##.. ..##.... ##..##.. ....##..
##..##.. ...##... .##..... ##..##.. ....##.. ##..##.. ##..##.. ..##.... ##..##.. ...##...
.####... .######. ######.. .####... ....##.. .####... .####... ..##.... .####... .###....
........ ........ ........ ........ ........ ........ ........ ........ ........ ........
"""


def fail(status, text):
    """End this rank with a message that names it."""
    print("rank %s: %s" % (os.environ.get("SLURM_PROCID", "?"), text), file=sys.stderr, flush=True)
    os._exit(status)  # at once: srun stops the other ranks


def need(name):
    """The value of an environment variable that srun or the batch script sets."""
    value = os.environ.get(name)
    if not value:
        fail(2, "%s is not set; start this with srun from a batch script that sets MASTER_ADDR" % name)
    return value


# ---------------------------------------------------------------- ranks


def own_address():
    """The address of this node by its own name: several nodes may share one machine."""
    for name in (os.environ.get("SLURMD_NODENAME"), socket.gethostname()):
        try:
            return socket.gethostbyname(name) if name else None
        except OSError:
            continue
    fail(2, "the name of this node, %s, has no address" % os.environ.get("SLURMD_NODENAME"))


def receive(sock, size):
    """Exactly size bytes from a blocking socket."""
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise ConnectionError("connection closed")
        data += part
    return data


def send_message(sock, value):
    data = json.dumps(value).encode()
    sock.sendall(struct.pack("!I", len(data)) + data)


def receive_message(sock):
    return json.loads(receive(sock, struct.unpack("!I", receive(sock, 4))[0]))


def listen(address, port):
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((address, port))
    server.listen(256)
    server.settimeout(PATIENCE)
    return server


def connect(address, port):
    """Connect to a rank that may not be listening yet."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            sock = socket.create_connection((address, port), timeout=PATIENCE)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def rendezvous(rank, world, me):
    """Tell rank 0 where this rank listens; learn where every rank listens."""
    master, port = need("MASTER_ADDR"), int(need("MASTER_PORT"))
    if rank != 0:
        with connect(master, port) as sock:
            send_message(sock, [rank, me])
            return receive_message(sock)
    table, callers = {0: me}, []
    with listen(socket.gethostbyname(master), port) as server:
        while len(table) < world:
            try:
                sock, _ = server.accept()
            except socket.timeout:
                missing = sorted(set(range(world)) - set(table))
                fail(4, "%d of %d ranks came within %.0f s; missing: %s" % (len(table), world, PATIENCE, missing))
            sock.settimeout(PATIENCE)
            other, place = receive_message(sock)
            table[other] = place
            callers.append(sock)
    places = [table[r] for r in range(world)]
    for sock in callers:
        send_message(sock, places)
        sock.close()
    return places


class Ring:
    """The ranks in a circle: each sends to the next one and receives from the one before."""

    def __init__(self, rank, world):
        self.rank, self.world = rank, world
        self.next, self.prev = (rank + 1) % world, (rank - 1) % world
        address = own_address()
        with listen(address, 0) as server:
            self.places = rendezvous(rank, world, [os.environ.get("SLURMD_NODENAME", ""), address, server.getsockname()[1]])
            if world > 1:
                self.out = connect(*self.places[self.next][1:])
                self.into, _ = server.accept()
                self.into.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if world > 1:
            self.out.setblocking(False)
            self.into.setblocking(False)

    def lost(self, rank, why):
        fail(4, "lost rank %d on %s: %s" % (rank, self.places[rank][0] or self.places[rank][1], why))

    def shift(self, data, size):
        """Send data to the next rank while receiving size bytes from the one before."""
        left, got = memoryview(data), bytearray()
        while left or len(got) < size:
            try:
                if left:
                    left = left[self.out.send(left):]
            except BlockingIOError:
                pass
            except OSError as err:
                self.lost(self.next, err)
            try:
                if len(got) < size:
                    part = self.into.recv(size - len(got))
                    if not part:
                        self.lost(self.prev, "connection closed")
                    got += part
                    continue
            except BlockingIOError:
                pass
            except OSError as err:
                self.lost(self.prev, err)
            if left or len(got) < size:
                ready = select.select([self.into] if len(got) < size else [], [self.out] if left else [], [], PATIENCE)
                if not any(ready):
                    self.lost(self.prev, "silent for %.0f s" % PATIENCE)
        return got

    def all_reduce(self, values):
        """Replace values on every rank by the sum over all ranks, the same to the last bit."""
        n, size = self.world, len(values)
        if n == 1:
            return
        cut = [size * i // n for i in range(n + 1)]
        for step in range(n - 1):  # reduce-scatter: afterwards this rank has the sum of chunk rank+1
            give, take = (self.rank - step) % n, (self.rank - step - 1) % n
            low, high = cut[take], cut[take + 1]
            part = array("d")
            part.frombytes(self.shift(values[cut[give]:cut[give + 1]].tobytes(), (high - low) * 8))
            values[low:high] = array("d", map(float.__add__, values[low:high], part))
        for step in range(n - 1):  # all-gather: pass the finished chunks round
            give, take = (self.rank - step + 1) % n, (self.rank - step) % n
            part = array("d")
            part.frombytes(self.shift(values[cut[give]:cut[give + 1]].tobytes(), (cut[take + 1] - cut[take]) * 8))
            values[cut[take]:cut[take + 1]] = part

    def check_same(self, what, *arrays):
        """End with an error if an array differs from that of the rank before."""
        mine = struct.pack("!I", zlib.crc32(b"".join(a.tobytes() for a in arrays)))
        if self.world > 1 and self.shift(mine, 4) != mine:
            fail(3, "%s differ from those of rank %d" % (what, self.prev))


# ---------------------------------------------------------------- data and model


def sample(index):
    """Sample number index: (pixels, digit)."""
    draw = random.Random(index)
    digit = index % CLASSES
    rows = [line.split()[digit] for line in GLYPHS.split("\n") if line]
    dx, dy, ink = draw.choice((0, 1)), draw.choice((0, 1)), draw.uniform(0.6, 1.0)
    pixels = [
        (ink if x >= dx and y >= dy and rows[y - dy][x - dx] == "#" else 0.0) + draw.gauss(0.0, 0.25)
        for y in range(8)
        for x in range(8)
    ]
    return pixels, digit


class Model:
    """64 pixels, a layer of 16 tanh units, 10 classes; all weights in one array."""

    def __init__(self):
        draw = random.Random(1)
        self.weights = array("d", [draw.gauss(0.0, 0.12) for _ in range(HIDDEN * (PIXELS + 1))])
        self.weights.extend(draw.gauss(0.0, 0.25) for _ in range(CLASSES * (HIDDEN + 1)))
        self.speed = array("d", bytes(8 * len(self.weights)))

    def layers(self):
        """The weights as two lists of rows; the last number of a row is its bias."""
        w, split = self.weights.tolist(), HIDDEN * (PIXELS + 1)
        first = [w[i:i + PIXELS + 1] for i in range(0, split, PIXELS + 1)]
        return first, [w[i:i + HIDDEN + 1] for i in range(split, len(w), HIDDEN + 1)]

    @staticmethod
    def forward(layers, pixels):
        """Activations of the hidden layer and the probabilities of the classes."""
        first, second = layers
        hidden = [math.tanh(sum(map(mul, row, pixels)) + row[-1]) for row in first]
        scores = [sum(map(mul, row, hidden)) + row[-1] for row in second]
        top = max(scores)
        powers = [math.exp(s - top) for s in scores]
        total = sum(powers)
        return hidden, [p / total for p in powers]

    def gradient(self, batch):
        """The gradient summed over a batch, with the loss and the sample count behind it."""
        layers = self.layers()
        grad1 = [[0.0] * (PIXELS + 1) for _ in range(HIDDEN)]
        grad2 = [[0.0] * (HIDDEN + 1) for _ in range(CLASSES)]
        loss = 0.0
        for pixels, digit in batch:
            hidden, probs = self.forward(layers, pixels)
            loss -= math.log(max(probs[digit], 1e-12))
            probs[digit] -= 1.0
            back = [0.0] * HIDDEN
            for error, row, into in zip(probs, layers[1], grad2):
                back = [b + error * w for b, w in zip(back, row)]
                into[:] = [g + error * h for g, h in zip(into, hidden + [1.0])]
            for signal, h, into in zip(back, hidden, grad1):
                error = signal * (1.0 - h * h)
                into[:] = [g + error * x for g, x in zip(into, pixels + [1.0])]
        flat = array("d")
        for row in grad1 + grad2:
            flat.extend(row)
        flat.extend((loss, float(len(batch))))
        return flat

    def step(self, grad, count):
        """Move the weights against the mean gradient, with momentum."""
        rate = RATE / count
        self.speed = array("d", [MOMENTUM * s - rate * g for s, g in zip(self.speed, grad)])
        self.weights = array("d", map(float.__add__, self.weights, self.speed))


# ---------------------------------------------------------------- training


def save(path, epoch, model):
    """Write the checkpoint whole or not at all."""
    with open(path + ".new", "w") as file:
        json.dump({"epoch": epoch, "weights": model.weights.tolist(), "speed": model.speed.tolist()}, file)
    os.replace(path + ".new", path)


def resume(ring, model, path):
    """After a requeue, take the checkpoint of rank 0 to every rank. Returns the epochs done."""
    size = len(model.weights)
    state = array("d", bytes(8 * (2 * size + 1)))
    if ring.rank == 0:
        done = 0
        if int(os.environ.get("SLURM_RESTART_COUNT") or 0) > 0 and os.path.exists(path):
            with open(path) as file:
                saved = json.load(file)
            model.weights, model.speed, done = array("d", saved["weights"]), array("d", saved["speed"]), saved["epoch"]
        state = model.weights + model.speed + array("d", [float(done)])
    ring.all_reduce(state)  # the others bring zeros: the sum is what rank 0 has
    model.weights, model.speed = state[:size], state[size:2 * size]
    return int(state[-1])


def evaluate(ring, model, share):
    """The part of the held-out samples that are recognised, over all ranks."""
    layers, hits = model.layers(), 0
    for pixels, digit in share:
        probs = model.forward(layers, pixels)[1]
        hits += probs.index(max(probs)) == digit
    counts = array("d", [hits, len(share)])
    ring.all_reduce(counts)
    return counts[0] / counts[1]


def train(ring, model, path):
    """Train; returns the losses of the first and of the last epoch."""
    epochs = int(os.environ.get("TRAIN_EPOCHS", 12))
    fail_rank, _, fail_epoch = os.environ.get("TRAIN_FAIL", "").partition("@")
    first_epoch = resume(ring, model, path)
    if first_epoch and ring.rank == 0:
        print("goes on after epoch %d from %s" % (first_epoch, path))
    data = {i: sample(i) for i in range(TRAIN) if i % ring.world == ring.rank}
    order, losses = list(range(TRAIN)), []
    for epoch in range(1, epochs + 1):
        random.Random(epoch).shuffle(order)  # the same order on every rank
        if epoch <= first_epoch:
            continue
        if fail_rank == str(ring.rank) and fail_epoch == str(epoch):
            fail(9, "dies in epoch %d, as TRAIN_FAIL asks" % epoch)
        began, total, count = time.monotonic(), 0.0, 0.0
        for start in range(0, TRAIN, BATCH):
            batch = [data[i] for i in order[start:start + BATCH] if i in data]
            grad = model.gradient(batch)
            ring.all_reduce(grad)
            ring.check_same("gradients", grad)
            model.step(grad, grad[-1])
            total, count = total + grad[-2], count + grad[-1]
        losses.append(total / count)
        if ring.rank == 0:
            save(path, epoch, model)
            print("epoch %2d  loss %.3f  %5.0f samples/s" % (epoch, losses[-1], TRAIN / (time.monotonic() - began)))
    ring.check_same("weights", model.weights, model.speed)
    return losses


def main():
    rank, world, local = int(need("SLURM_PROCID")), int(need("SLURM_NTASKS")), int(need("SLURM_LOCALID"))
    try:
        ring = Ring(rank, world)
    except OSError as err:
        fail(4, "cannot reach the other ranks by %s:%s: %s" % (need("MASTER_ADDR"), need("MASTER_PORT"), err))
    devices = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    listed = devices.split(",")
    node, address, _ = ring.places[rank]
    print("rank %d of %d on %s (%s)  CUDA_VISIBLE_DEVICES=%s, uses %s"
          % (rank, world, node, address, devices, listed[local % len(listed)] or "the CPU"))

    path, model = "train-%s.ckpt" % need("SLURM_JOB_ID"), Model()
    losses = train(ring, model, path)
    accuracy = evaluate(ring, model, [sample(i) for i in range(TRAIN, TRAIN + TEST) if i % world == rank])
    if rank == 0:
        print("accuracy %.1f %% of %d held-out digits; weights identical on %d ranks; checkpoint %s"
              % (100 * accuracy, TEST, world, path))
    if len(losses) > 1 and not losses[-1] < losses[0]:
        fail(1, "the loss did not fall: %.3f, then %.3f" % (losses[0], losses[-1]))
    if accuracy < 0.8:
        fail(1, "the accuracy is too low: %.2f" % accuracy)


if __name__ == "__main__":
    main()
