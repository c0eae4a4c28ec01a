"""What the tutorials share: where tensors lie, and a command line.

    python vector_add.py                  checks the kernel against torch
    python vector_add.py --plot FOLDER    and measures it: FOLDER gets a table and a picture

GRETA_TRITON=1 is set unless CUDA is there and GRETA_TRITON=0: the same kernels then run on Triton's own back end.
"""

import argparse
import os

import torch

if not (torch.cuda.is_available() and os.environ.get("GRETA_TRITON") == "0"):
    os.environ["GRETA_TRITON"] = "1"

import triton  # noqa: E402


def device():
    return triton.runtime.driver.active.get_active_torch_device()


def close(got, want, tolerance):
    torch.testing.assert_close(got.float(), want.float(), rtol=tolerance, atol=tolerance)


def main(check, benchmark):
    parser = argparse.ArgumentParser()
    parser.add_argument("--plot", metavar="FOLDER")
    arguments = parser.parse_args()
    check()
    print("the results are torch's")
    if arguments.plot:
        os.makedirs(arguments.plot, exist_ok=True)
        benchmark.run(print_data=True, save_path=arguments.plot)
