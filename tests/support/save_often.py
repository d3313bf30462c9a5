"""The command line, with a checkpoint after every epoch: `python save_often.py train …`."""

from gcnii.cli import main
from gcnii.train import group

if __name__ == "__main__":
    group.SAVE_EVERY, group.SAVE_SHARE = 0, float("inf")
    main()
