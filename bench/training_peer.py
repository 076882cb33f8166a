"""A rank of Python that trains a model, and exchanges tensors, when a driver says so.

    training_peer.py ddp|kolo SOCKET NAME MODEL BATCH

ddp:  torch's DistributedDataParallel over Gloo (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT)
kolo: kolo.torch, under `kolo run` or alone

Calls in at SOCKET with "NAME RANK", then obeys lines: "run N" (N steps), "allreduce COUNT N" (so many
sums of COUNT floats), "named COUNT N" (the same as operations that ranks may start in any order), all
answered by the seconds they took; "idle S" (processor time that S seconds without work took); "quit". The models are those of examples/models.h. Buffers are not broadcast, as
kolo does not either.
"""

import math
import os
import socket
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


class Mlp(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        x = x.flatten(1)
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i + 1 < len(self.layers):
                x = torch.relu(x)
        return x


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        blocks, inputs = [], 64
        for stage in range(4):
            outputs = 64 << stage
            blocks += [
                ResidualBlock(inputs, outputs, 1 if stage == 0 else 2),
                ResidualBlock(outputs, outputs, 1),
            ]
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        x = self.blocks(torch.relu(self.bn1(self.conv1(x))))
        return self.fc(F.adaptive_avg_pool2d(x, (1, 1)).flatten(1))


class Vgg(nn.Module):
    def __init__(self):
        super().__init__()
        inputs, convs = 3, []
        for outputs in (64, 128, 256, 256, 512, 512):
            convs.append(nn.Conv2d(inputs, outputs, 3, padding=1))
            inputs = outputs
        self.convs = nn.ModuleList(convs)
        self.fc1, self.fc2, self.fc3 = nn.Linear(2048, 4096), nn.Linear(4096, 512), nn.Linear(512, 10)

    def forward(self, x):
        for i, conv in enumerate(self.convs):
            x = torch.relu(conv(x))
            if i not in (2, 4):
                x = F.max_pool2d(x, 2)
        x = torch.relu(self.fc1(x.flatten(1)))
        return self.fc3(torch.relu(self.fc2(x)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))

    def attend(self, x):
        batch, length, width = x.shape
        q, k, v = (
            self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        )
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(width / self.heads)
        ahead = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(ahead, -1e9).softmax(-1)
        return self.out(torch.matmul(scores, v).transpose(1, 2).reshape(batch, length, width))


class Transformer(nn.Module):
    def __init__(self, symbols=96, width=128, heads=4, layers=4, context=64):
        super().__init__()
        self.symbols, self.places = nn.Embedding(symbols, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)

    def forward(self, text):
        x = self.symbols(text) + self.places(torch.arange(text.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def make(name, batch, seed):
    """A model, its inputs and its targets."""
    random = torch.Generator().manual_seed(seed)
    if name == "transformer":
        text = torch.randint(0, 96, (batch, 65), generator=random)
        return Transformer(), text[:, :-1], text[:, 1:].flatten()
    model, shape = {
        "mlp200": lambda: (Mlp([64] * 100 + [10]), (64,)),
        "resnet18": lambda: (ResNet18(), (3, 32, 32)),
        "vgg": lambda: (Vgg(), (3, 32, 32)),
    }[name]()
    inputs = torch.randn(batch, *shape, generator=random)
    return model, inputs, torch.randint(0, 10, (batch,), generator=random)


class Ddp:
    """torch's own way."""

    def __init__(self):
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        if self.size > 1:
            import torch.distributed

            torch.distributed.init_process_group("gloo", rank=self.rank, world_size=self.size)

    def wrap(self, model, optimizer):
        if self.size > 1:
            model = nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)
        return model, optimizer

    def barrier(self):
        if self.size > 1:
            torch.distributed.barrier()

    def allreduce(self, tensor):
        torch.distributed.all_reduce(tensor)


class Kolo:
    """kolo.torch."""

    def __init__(self):
        import kolo
        import kolo.torch as hvd

        hvd.init()
        self.kolo, self.hvd, self.rank, self.size = kolo, hvd, hvd.rank(), hvd.size()

    def wrap(self, model, optimizer):
        return model, self.hvd.DistributedOptimizer(optimizer, model.named_parameters())

    def barrier(self):
        self.hvd.barrier()

    def allreduce(self, tensor):
        self.kolo.allreduce(tensor, self.hvd.Sum)

    def named_allreduce(self, tensor):
        self.hvd.allreduce_(tensor, op=self.hvd.Sum)


def main():
    system, path, name, model_name, batch = sys.argv[1:6]
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    peer = {"ddp": Ddp, "kolo": Kolo}[system]()
    torch.manual_seed(1)
    model, inputs, targets = make(model_name, int(batch), 100 + peer.rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    model, optimizer = peer.wrap(model, optimizer)

    def run(steps):
        for _ in range(steps):
            optimizer.zero_grad()
            scores = model(inputs)
            F.cross_entropy(scores.flatten(0, -2), targets).backward()
            optimizer.step()

    def reduce(allreduce, count, repeats):
        tensor = torch.ones(count)
        allreduce(tensor)
        assert tensor[0] == tensor[-1] == peer.size, "the sum is wrong"
        tensor.zero_()
        peer.barrier()
        begin = time.perf_counter()
        for _ in range(repeats):
            allreduce(tensor)
        return time.perf_counter() - begin

    def timed_run(steps):
        peer.barrier()
        begin = time.perf_counter()
        run(steps)
        return time.perf_counter() - begin

    def idle(seconds):
        begin = time.process_time()
        time.sleep(seconds)
        return time.process_time() - begin

    verbs = {
        "run": timed_run,
        "allreduce": lambda *numbers: reduce(peer.allreduce, *numbers),
        "named": lambda *numbers: reduce(peer.named_allreduce, *numbers),
        "idle": idle,
    }
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    lines = connection.makefile("rw")
    print(name, peer.rank, file=lines, flush=True)
    for line in lines:
        verb, *numbers = line.split()
        if verb == "quit":
            break
        print(verbs[verb](*map(int, numbers)), file=lines, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
