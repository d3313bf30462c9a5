"""TF-IDF of a text column, with scikit-learn; vocabulary and weights are plain lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from gcnii.columns.table import Texts

MOST_WORDS = 5000
WORD = r"(?u)\b(?!\d+\b)\w\w+\b"  # scikit-learn's, without bare numbers


def learn_words(texts: Texts) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The most frequent words and their inverse document frequencies; none if there are no words.

    A word of one node alone tells nothing about another node, and is left out; so are numbers.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(min_df=2, max_features=MOST_WORDS, token_pattern=WORD)
    try:
        vectorizer.fit(_documents(texts))
    except ValueError:  # no word is left
        return (), ()
    words = map(str, vectorizer.get_feature_names_out())
    return tuple(words), tuple(map(float, vectorizer.idf_))


def tf_idf(texts: Texts, words: Sequence[str], weights: Sequence[float]) -> sp.csr_array:
    """(n, words) the weights of the words of each text, rows of length 1."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(vocabulary=list(words))
    vectorizer.idf_ = np.array(weights)
    return sp.csr_array(vectorizer.transform(_documents(texts)), dtype=np.float32)


def _documents(texts: Texts) -> list[str]:
    return [text or "" for text in texts]
