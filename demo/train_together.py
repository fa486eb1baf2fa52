#!/usr/bin/python3
"""Trains one network on several nodes, each by its own mount: data-parallel, by torch.distributed
with gloo.

Usage: train_together.py DATA CHECKPOINTS --rank R --ranks N --meet ADDRESS:PORT [options]

Each of the N processes sees its part of the images, and all take the mean of their gradients, so
they have the same weights after each step. After each epoch each writes its shard of the checkpoint
(its part of the weights and of the optimizer's moments) under a temporary name, syncs it and
renames it. At the end each reads all shards of all checkpoints, and compares them with what was to
be written; then it tests a part. What happens is told in lines of JSON.
"""

import argparse
import hashlib
import os
import sys
import time

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, Subset

from train import CLASSES, POOL, SIDE, ImageFiles, tell

HIDDEN = 4096
PIECE_BYTES = 1 << 20
HALT_SHARE = 0.2


class Network(nn.Module):
    """Two layers, wide enough that a checkpoint takes its time."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear((SIDE // POOL) ** 2, HIDDEN), nn.ReLU(),
            nn.Linear(HIDDEN, CLASSES))

    def forward(self, images):
        grey = images[..., 1].unsqueeze(1).float()
        return self.layers(nn.functional.avg_pool2d(grey, POOL) / 255)


class Training:
    def __init__(self, words):
        torch.manual_seed(words.seed)
        self.words = words
        self.network = Network()
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=5e-4)
        self.longest_step_s = 0.0

    def step(self, images, labels):
        started_s = time.monotonic()
        loss = nn.functional.cross_entropy(self.network(images), labels)
        self.optimizer.zero_grad()
        loss.backward()
        parameters = list(self.network.parameters())
        mean = torch.cat([parameter.grad.flatten() for parameter in parameters])
        distributed.all_reduce(mean)
        mean /= self.words.ranks
        at = 0
        for parameter in parameters:
            parameter.grad.copy_(mean[at:at + parameter.numel()].view_as(parameter))
            at += parameter.numel()
        self.optimizer.step()
        self.longest_step_s = max(self.longest_step_s, time.monotonic() - started_s)
        return loss.item()

    def shards(self):
        """The whole state, cut for the ranks."""
        state = [parameter.detach().flatten() for parameter in self.network.parameters()]
        for parameter in self.network.parameters():
            moments = self.optimizer.state[parameter]
            state += [moments["exp_avg"].flatten(), moments["exp_avg_sq"].flatten()]
        return torch.cat(state).tensor_split(self.words.ranks)


def shard_bytes(shard):
    return shard.numpy().tobytes()


def shard_path(words, epoch, rank):
    return os.path.join(words.checkpoints, f"checkpoint-{epoch}-{rank}-of-{words.ranks}")


def epoch_loader(words, folder, epoch):
    """This rank's images of an epoch, as many as each other rank has."""
    files = ImageFiles(os.path.join(words.data, folder))
    order = torch.randperm(len(files), generator=torch.Generator().manual_seed(words.seed + epoch))
    count = len(files) // words.ranks
    part = order[words.rank * count:(words.rank + 1) * count].tolist()
    return DataLoader(Subset(files, part), batch_size=words.batch), count


def train_epoch(training, words, epoch):
    loader, count = epoch_loader(words, "train", epoch)
    training.network.train()
    training.longest_step_s = 0.0
    started_s = time.monotonic()
    losses = 0.0
    for images, labels in loader:
        losses += training.step(images, labels) * len(labels)
    tell("trained", epoch=epoch, images=count, seconds=time.monotonic() - started_s,
         longest_step_s=training.longest_step_s, loss=losses / count)


def save(training, words, epoch):
    """Writes this rank's shard; all ranks go on when all have written theirs."""
    data = memoryview(shard_bytes(training.shards()[words.rank]))
    path = shard_path(words, epoch, words.rank)
    tell("saving", epoch=epoch, path=path + ".tmp", bytes=len(data))
    halts = epoch in words.halt
    started_s = time.monotonic()
    with open(path + ".tmp", "wb", buffering=0) as file:
        at = 0
        while at < len(data):
            if halts and at >= HALT_SHARE * len(data):
                halts = False
                tell("halted", epoch=epoch, share=at / len(data))
                sys.stdin.readline()
            at += file.write(data[at:at + PIECE_BYTES])
        os.fsync(file.fileno())
    os.rename(path + ".tmp", path)
    seconds = time.monotonic() - started_s
    distributed.barrier()
    tell("saved", epoch=epoch, seconds=seconds, all_seconds=time.monotonic() - started_s)


def verify(words, written):
    """All shards of all epochs by this rank's mount; `written` has their sums."""
    for epoch in range(1, words.epochs + 1):
        wrong = 0
        for rank in range(words.ranks):
            with open(shard_path(words, epoch, rank), "rb") as file:
                wrong += hashlib.sha256(file.read()).hexdigest() != written[epoch][rank]
        tell("verified", epoch=epoch, shards=words.ranks, wrong=wrong)


def test(training, words):
    loader, count = epoch_loader(words, "test", 0)
    training.network.eval()
    right = 0
    with torch.no_grad():
        for images, labels in loader:
            right += (training.network(images).argmax(dim=1) == labels).sum().item()
    weights = hashlib.sha256(b"".join(shard_bytes(shard) for shard in training.shards()))
    tell("tested", images=count, right=right, weights=weights.hexdigest()[:16])


def run(words):
    training = Training(words)
    written = {}
    for epoch in range(1, words.epochs + 1):
        train_epoch(training, words, epoch)
        save(training, words, epoch)
        # Each rank has the whole state, so each knows what every shard must be.
        written[epoch] = [hashlib.sha256(shard_bytes(shard)).hexdigest()
                          for shard in training.shards()]
    verify(words, written)
    test(training, words)


def main():
    parser = argparse.ArgumentParser(description="Trains a network on several nodes.")
    parser.add_argument("data", metavar="DATA")
    parser.add_argument("checkpoints", metavar="CHECKPOINTS")
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--meet", metavar="ADDRESS:PORT", required=True)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--halt", type=int, action="append", default=[], metavar="EPOCH",
                        help="with a fifth of its checkpoint written, until a line is read")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    words = parser.parse_args()
    torch.set_num_threads(1)
    os.makedirs(words.checkpoints, exist_ok=True)
    # The store by which they meet: by libuv where nothing is said, which Debian builds without.
    os.environ.setdefault("USE_LIBUV", "0")
    distributed.init_process_group("gloo", init_method=f"tcp://{words.meet}", rank=words.rank,
                                   world_size=words.ranks)
    run(words)
    distributed.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
