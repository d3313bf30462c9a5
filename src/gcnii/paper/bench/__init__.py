"""Speed and memory: this code, PyG's and the authors' manner, measured in turn, beside the least
time there can be.
"""
