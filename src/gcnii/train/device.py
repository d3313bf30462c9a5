"""Where to train: `auto` takes a CUDA device if there is one."""

import re

import torch


def choose_device(name: str = "auto") -> torch.device:
    """The torch device for auto, cpu, cuda or cuda:N."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise ValueError(f"device must be auto, cpu or cuda, got {name!r}")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError("device cuda was asked for, but torch finds no CUDA device; use --device cpu or auto")
    return torch.device(name)


def device_name(device: torch.device) -> str:
    """For the record: `cpu`, or `cuda: ` and the card's name."""
    return f"cuda: {torch.cuda.get_device_name(device)}" if device.type == "cuda" else "cpu"
