"""Data-parallel training with PyTorch: the eight steps of the Horovod tutorial.

Run:     kolo run -np 2 python examples/python/torch_train.py
Expect:  "accuracy 0.8…" on the test images after one epoch over a third of the training images.
"""

import argparse

import fashion
import torch

import kolo.torch as hvd  # was: import horovod.torch as hvd

parser = argparse.ArgumentParser()
parser.add_argument("--images", type=int, default=20000)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--epochs", type=int, default=1)
arguments = parser.parse_args()

# 1. Initialise.
hvd.init()
torch.manual_seed(hvd.rank())
# 2. One GPU per process, where there are GPUs.
device = "cuda" if torch.cuda.is_available() else "cpu"
if device == "cuda":
    torch.cuda.set_device(hvd.local_rank())
# 3. Each rank has its part of the data.
images, labels = fashion.tensors("train", arguments.images)
dataset = torch.utils.data.TensorDataset(images, labels)
sampler = torch.utils.data.distributed.DistributedSampler(
    dataset, num_replicas=hvd.size(), rank=hvd.rank()
)
loader = torch.utils.data.DataLoader(dataset, batch_size=arguments.batch, sampler=sampler)

model = torch.nn.Sequential(
    torch.nn.Flatten(), torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
).to(device)
# 4. The learning rate grows with the number of ranks.
optimizer = torch.optim.SGD(model.parameters(), lr=0.05 * hvd.size(), momentum=0.9)
# 5. Gradients are averaged over all ranks while backward runs.
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
# 6. All ranks start from the same model.
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)

for epoch in range(arguments.epochs):
    sampler.set_epoch(epoch)
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        if step % 100 == 0 and hvd.rank() == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.3f}")

# 7. One rank saves.
if hvd.rank() == 0:
    torch.save(model.state_dict(), "checkpoint.pt")
# 8. Metrics are averaged over all ranks; each looks at its part of the test images.
model.eval()
images, labels = fashion.tensors("t10k")
part = slice(hvd.rank(), None, hvd.size())
with torch.no_grad():
    right = (model(images[part].to(device)).argmax(1).cpu() == labels[part]).float().mean()
accuracy = hvd.allreduce(right, name="accuracy").item()
if hvd.rank() == 0:
    print(f"accuracy {accuracy:.4f}")
