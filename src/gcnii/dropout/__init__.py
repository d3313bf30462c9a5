"""Counter-based dropout: a mask is a hash of (seed, epoch, layer, element), not a random stream.

So a run is its seed: the masks are the same on a CPU and on a GPU, alone and among a hundred
replicas, and again when activations are recomputed.  It is also faster, because integer hashing
runs in vector registers and a stream does not.

The key of a mask is two 32-bit words, made from the seed, the epoch and the index of the dropout
call in the forward pass.  Each 32-bit word of the hash decides two neighbouring elements, by its
lower and its upper 16 bits.
"""

from gcnii.dropout.dropout import DropForm as DropForm
from gcnii.dropout.dropout import Dropout as Dropout
from gcnii.dropout.dropout import InplaceDropout as InplaceDropout
from gcnii.dropout.dropout import drop_edges as drop_edges
from gcnii.dropout.dropout import drop_nodes as drop_nodes
from gcnii.dropout.keys import KeySequence as KeySequence
from gcnii.dropout.keys import current_keys as current_keys
from gcnii.dropout.keys import current_rows as current_rows
from gcnii.dropout.keys import epoch_key as epoch_key
from gcnii.dropout.keys import keyed as keyed
from gcnii.dropout.keys import next_key as next_key
from gcnii.dropout.keys import next_keys as next_keys
from gcnii.dropout.keys import numbered_keys as numbered_keys
from gcnii.dropout.keys import view_keys as view_keys
from gcnii.dropout.masks import LEVELS as LEVELS
from gcnii.dropout.masks import Words as Words
from gcnii.dropout.masks import keep_mask as keep_mask
from gcnii.dropout.masks import kept_of as kept_of
from gcnii.dropout.masks import levels as levels
from gcnii.dropout.masks import words_of as words_of
