"""What elastic_steps.cc does, for torchrun: notes when each step was done, and is started again."""
import os
import sys
import time

import torch
import torch.distributed as dist


def main():
    directory, pause = sys.argv[1], int(sys.argv[2]) / 1000
    dist.init_process_group("gloo")
    state = os.path.join(directory, "state.pt")
    step = torch.load(state) if os.path.exists(state) else 0
    weights = torch.zeros(250_000)
    with open(os.path.join(directory, f"steps.{os.getpid()}"), "w", encoding="utf-8") as notes:
        while not os.path.exists(os.path.join(directory, "stop")):
            time.sleep(pause)
            dist.all_reduce(weights)
            step += 1
            if dist.get_rank() == 0:
                torch.save(step, state + ".new")
                os.replace(state + ".new", state)
            print(time.monotonic_ns(), dist.get_rank(), dist.get_world_size(), step, file=notes, flush=True)


main()
