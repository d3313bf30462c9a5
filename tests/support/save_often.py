"""The command line, with a checkpoint after every epoch: `python save_often.py train …`."""

from gcnii.cli import main
from gcnii.train.replicas import training

if __name__ == "__main__":
    training.SAVE_EVERY, training.SAVE_SHARE = 0, float("inf")
    main()
