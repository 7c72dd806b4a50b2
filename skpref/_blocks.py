"""Rows in blocks, so that no intermediate array grows with their number."""


def row_blocks(n: int, width: int, doubles: int) -> list[slice]:
    """Slices of n rows, each of no more than so many numbers, or of one row.

    Parameters
    ----------
    n : int
    width : int
        Numbers a row.
    doubles : int
        Numbers a block.

    Examples
    --------
    >>> row_blocks(5, 3, 6)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None)]
    """
    step = max(doubles // max(width, 1), 1)
    return [slice(begin, begin + step) for begin in range(0, n, step)]
