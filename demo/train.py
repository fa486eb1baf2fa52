#!/usr/bin/python3
"""Trains a small convolutional network from one file an image, one epoch a run.

Usage: train.py epoch DATA CHECKPOINTS [options]     the epoch after the last whole checkpoint
       train.py memory DATA [options]                images a second when no file is read

DATA is a folder as prepare.py writes it. The files are opened one by one, in random order, by the
workers of an ordinary DataLoader. After the epoch and its test a checkpoint of everything that
training needs is written under a temporary name, synced and renamed; a temporary one that was left
behind is removed at the next start. With the same seed and number of threads each run gives the
same weights, however often it was interrupted. What happens is told in lines of JSON.
"""

import argparse
import hashlib
import json
import os
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 128
COLOURS = 3
HEADER = b"P6\n%d %d\n255\n" % (SIDE, SIDE)
CLASSES = 10
POOL = 4

# The wide layer: one row for each place of a 3x3 patch and each way to fill it with 3 greys.
PATCH = 3
GREYS = 3
PLACES = 10 * 10
PATCHES = GREYS ** (PATCH * PATCH)
WIDE_OUT = 12
DEEP_OUT = 64

KEPT_CHECKPOINTS = 2
PIECE_BYTES = 4 << 20


def tell(event, **values):
    print(json.dumps({"event": event, **values}), flush=True)


class ImageFiles(Dataset):
    """DATA/SET/LABEL-NAME/*.ppm; the files' names are read once, their bytes when asked for."""

    def __init__(self, folder):
        self.rows = []
        for name in sorted(os.listdir(folder)):
            label = int(name.split("-", 1)[0])
            inside = os.path.join(folder, name)
            self.rows += [(os.path.join(inside, file), label)
                          for file in sorted(os.listdir(inside))]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        path, label = self.rows[index]
        with open(path, "rb", buffering=0) as file:
            data = file.read()
        if len(data) != len(HEADER) + SIDE * SIDE * COLOURS or not data.startswith(HEADER):
            raise ValueError(f"{path} is not a {SIDE}x{SIDE} PPM")
        image = torch.frombuffer(bytearray(data), dtype=torch.uint8, offset=len(HEADER))
        return image.view(SIDE, SIDE, COLOURS), label


class Network(nn.Module):
    """Wide and deep: three small convolutions, beside a wide layer that looks whole patches up."""

    def __init__(self):
        super().__init__()
        self.deep = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(16, DEEP_OUT, SIDE // POOL // 4), nn.ReLU(), nn.Flatten())
        self.wide = nn.EmbeddingBag(PLACES * PATCHES, WIDE_OUT, mode="sum", sparse=True)
        nn.init.zeros_(self.wide.weight)
        self.head = nn.Linear(DEEP_OUT + WIDE_OUT, CLASSES)
        powers = (GREYS ** torch.arange(PATCH * PATCH)).float()
        self.register_buffer("powers", powers.view(1, 1, PATCH, PATCH), persistent=False)
        self.register_buffer("first_rows", torch.arange(PLACES) * PATCHES, persistent=False)
        self.register_buffer("grey_bounds", torch.tensor([0.2, 0.6]), persistent=False)

    def forward(self, images):
        # Pools first, so that feeding it is the work. The images are grey: one colour has it all.
        grey = images[..., 1].unsqueeze(1).float()
        grey = nn.functional.avg_pool2d(grey, POOL) / 255
        digits = torch.bucketize(grey, self.grey_bounds).float()[:, :, 1:-1, 1:-1]
        rows = nn.functional.conv2d(digits, self.powers, stride=PATCH).flatten(1)
        wide = self.wide(rows.round().long() + self.first_rows)
        return self.head(torch.cat([self.deep(grey), wide], dim=1))


class Training:
    """The network with its optimizers, and what a checkpoint holds of them."""

    def __init__(self, seed):
        torch.manual_seed(seed)
        self.epochs_done = 0
        self.network = Network()
        wide = list(self.network.wide.parameters())
        others = [parameter for parameter in self.network.parameters()
                  if all(parameter is not one for one in wide)]
        self.optimizers = [torch.optim.Adam(others, lr=2e-3),
                           torch.optim.SparseAdam(wide, lr=1e-3)]

    def step(self, images, labels):
        loss = nn.functional.cross_entropy(self.network(images), labels)
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
        return loss.item()

    def state(self):
        return {"epochs_done": self.epochs_done, "network": self.network.state_dict(),
                "optimizers": [optimizer.state_dict() for optimizer in self.optimizers]}

    def load(self, state):
        self.epochs_done = state["epochs_done"]
        self.network.load_state_dict(state["network"])
        for optimizer, part in zip(self.optimizers, state["optimizers"]):
            optimizer.load_state_dict(part)

    def digest(self):
        """Equal for equal weights."""
        total = hashlib.sha256()
        for parameter in self.network.parameters():
            total.update(parameter.detach().numpy().tobytes())
        return total.hexdigest()[:16]


def checkpoint_path(folder, epoch):
    return os.path.join(folder, f"checkpoint-{epoch:03d}.pt")


def whole_checkpoints(folder):
    """The numbers of those that were renamed, in order."""
    return sorted(int(name[11:-3]) for name in os.listdir(folder)
                  if name.startswith("checkpoint-") and name.endswith(".pt"))


def resume(training, folder):
    left_bytes = None
    for name in os.listdir(folder):
        if name.endswith(".tmp"):
            left_bytes = os.path.getsize(os.path.join(folder, name))
            os.unlink(os.path.join(folder, name))
    whole = whole_checkpoints(folder)
    size_bytes = 0
    started_s = time.monotonic()
    if whole:
        path = checkpoint_path(folder, whole[-1])
        training.load(torch.load(path))
        size_bytes = os.path.getsize(path)
    tell("resumed", epochs_done=training.epochs_done, left_bytes=left_bytes, bytes=size_bytes,
         seconds=time.monotonic() - started_s)


class Pieces:
    """Writes in pieces, and to the last byte, as a file of its own may not."""

    def __init__(self, file):
        self.file = file

    def write(self, data):
        rest = memoryview(data)
        while rest:
            rest = rest[self.file.write(rest[:PIECE_BYTES]):]
        return len(data)

    def flush(self):
        self.file.flush()


def save(training, folder):
    path = checkpoint_path(folder, training.epochs_done)
    state = training.state()
    tell("saving", path=path + ".tmp")
    started_s = time.monotonic()
    with open(path + ".tmp", "wb", buffering=0) as file:
        torch.save(state, Pieces(file))
        os.fsync(file.fileno())
    os.rename(path + ".tmp", path)
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(directory)
    os.close(directory)
    seconds = time.monotonic() - started_s
    tell("saved", path=path, bytes=os.path.getsize(path), seconds=seconds)
    for epoch in whole_checkpoints(folder)[:-KEPT_CHECKPOINTS]:
        os.unlink(checkpoint_path(folder, epoch))


def start_worker(_):
    torch.set_num_threads(1)


def train_epoch(training, words):
    """Sees each image once, in an order that the seed and the epoch decide."""
    files = ImageFiles(os.path.join(words.data, "train"))
    order = torch.Generator().manual_seed(words.seed * 1000 + training.epochs_done)
    loader = DataLoader(files, batch_size=words.batch, shuffle=True, generator=order,
                        num_workers=words.workers, worker_init_fn=start_worker,
                        prefetch_factor=4)
    training.network.train()
    waited_s = 0.0
    losses = 0.0
    count = 0
    started_s = asked_s = time.monotonic()
    for images, labels in loader:
        waited_s += time.monotonic() - asked_s
        losses += training.step(images, labels) * len(labels)
        count += len(labels)
        asked_s = time.monotonic()
    training.epochs_done += 1
    tell("trained", epoch=training.epochs_done, images=count, waited_s=waited_s,
         seconds=time.monotonic() - started_s, loss=losses / count)


def test_epoch(training, words):
    files = ImageFiles(os.path.join(words.data, "test"))
    loader = DataLoader(files, batch_size=words.batch, num_workers=words.workers,
                        worker_init_fn=start_worker)
    training.network.eval()
    right = 0
    with torch.no_grad():
        for images, labels in loader:
            right += (training.network(images).argmax(dim=1) == labels).sum().item()
    tell("tested", images=len(files), accuracy=right / len(files), weights=training.digest())


def run_epoch(words):
    training = Training(words.seed)
    os.makedirs(words.checkpoints, exist_ok=True)
    resume(training, words.checkpoints)
    train_epoch(training, words)
    test_epoch(training, words)
    save(training, words.checkpoints)


def run_memory(words):
    """The same steps on images that are in memory already: what the network could take. Tells the
    best of several rounds, as whatever else runs on the machine only slows them."""
    files = ImageFiles(os.path.join(words.data, "train"))
    order = torch.randperm(len(files), generator=torch.Generator().manual_seed(words.seed))
    batches = []
    for part in order[:2048].split(words.batch):
        images, labels = zip(*[files[index] for index in part.tolist()])
        batches.append((torch.stack(images), torch.tensor(labels)))
    training = Training(words.seed)
    for images, labels in batches[:4]:
        training.step(images, labels)
    count = sum(len(labels) for _, labels in batches)
    best_s = None
    end_s = time.monotonic() + words.seconds
    while time.monotonic() < end_s:
        started_s = time.monotonic()
        for images, labels in batches:
            training.step(images, labels)
        seconds = time.monotonic() - started_s
        best_s = min(best_s, seconds) if best_s else seconds
    tell("memory", images=count, seconds=best_s)


def main():
    parser = argparse.ArgumentParser(description="Trains a network from one file an image.")
    parser.add_argument("command", choices=("epoch", "memory"))
    parser.add_argument("data", metavar="DATA")
    parser.add_argument("checkpoints", metavar="CHECKPOINTS", nargs="?")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5, help="how long memory measures")
    words = parser.parse_args()
    if words.command == "epoch" and not words.checkpoints:
        parser.error("epoch needs CHECKPOINTS")
    torch.set_num_threads(words.threads)
    torch.use_deterministic_algorithms(True)
    if words.command == "epoch":
        run_epoch(words)
    else:
        run_memory(words)
    return 0


if __name__ == "__main__":
    sys.exit(main())
