"""Where what several tests replace is: `monkeypatch.setattr(knobs.ROUNDS, 1)`."""

# trainings
SAVE_EVERY = "gcnii.train.group.SAVE_EVERY"  # seconds between two checkpoints
STEP = "gcnii.train.replicas.Replicas.differentiate"  # once an epoch of all replicas
LINES_EVERY = "gcnii.train.callbacks.EVERY"  # seconds between two lines of progress
USABLE = "gcnii.kernels.usable"  # whether Triton's kernels are used for a tensor
LONG_ROWS = "gcnii.kernels.LONG"  # rows per product from which on products are done one by one
KEPT_ACTIVATIONS = "gcnii.nn.dropedge.KEPT"  # of a group of branches, per replica

# portfolios
EXTENTS = "gcnii.tuning.portfolio.EXTENTS"  # which networks and how many folds an effort has

# studies
TRIAL_FIT = "gcnii.tuning.trials.fit_plans"  # trains the settings of a batch
FITTED = "gcnii.tuning.worker.fitted"  # the same, in a worker, or None if it diverged
AT_ONCE = "gcnii.tuning.worker.Worker.at_once"  # how many settings are trained at once
GRACE = "gcnii.tuning.storage.GRACE"  # seconds of silence after which a worker counts as dead
BAR_TRIALS = "gcnii.tuning.study.trials_of"  # the trials that the bar counts
CLOSE = "gcnii.tuning.study.close"  # confirms the best settings, and trains the winner
FIND_OPTUNA = "gcnii.tuning.tune.find_spec"

# examinations and evaluations
EXAMINED_EPOCHS = "gcnii.analysis.checkup.EPOCHS"  # of each training
EXAMINED_FIT = "gcnii.analysis.checkup.fit_plans"
SMALL_GRAPH = "gcnii.analysis.filters.SMALL"  # nodes up to which all eigenvectors are computed
ROUNDS = "gcnii.members.trees.ROUNDS"  # of boosting, at most

# data and the paper's study
ATTEMPTS = "gcnii.data.download.ATTEMPTS"  # how often a file is asked for
LEDGER_LOAD = "gcnii_paper.ledger.load"  # reads the graph of a cell
REPRODUCED_FIT = "gcnii_paper.reproduce.fit_plans"  # trains the runs of a cell
