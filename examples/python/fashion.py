"""Fashion-MNIST from Debian's package dataset-fashion-mnist, for the examples: no download."""

import gzip
import os
import struct

FOLDER = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")


def read(name):
    """The bytes of one of the files, and its dimensions."""
    with gzip.open(os.path.join(FOLDER, name + "-ubyte.gz"), "rb") as file:
        magic = struct.unpack(">I", file.read(4))[0]
        shape = struct.unpack(f">{magic & 255}I", file.read(4 * (magic & 255)))
        return bytearray(file.read()), shape


def tensors(part="train", count=None):
    """Images between 0 and 1, and labels, as tensors of torch."""
    import torch

    data, shape = read(f"{part}-images-idx3")
    images = torch.frombuffer(data, dtype=torch.uint8).view(*shape)
    labels = torch.frombuffer(read(f"{part}-labels-idx1")[0], dtype=torch.uint8)
    return images[:count].float().unsqueeze(1) / 255.0, labels[:count].long()


def arrays(part="train", count=None):
    """The same as arrays of NumPy."""
    import numpy as np

    data, shape = read(f"{part}-images-idx3")
    images = np.frombuffer(data, dtype=np.uint8).reshape(shape)
    labels = np.frombuffer(read(f"{part}-labels-idx1")[0], dtype=np.uint8)
    return images[:count].astype("float32") / 255.0, labels[:count].astype("int64")
