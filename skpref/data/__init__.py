"""From what people have to what engines see: items, labels and answers.

Containers and builders turn tables, lists and votes into X and y; files of votes are opened as
tables first. The reader says which items X names; labels say what y states; `Comparisons` holds the
answers as inequalities between utilities. Nothing here knows of kernels, likelihoods or engines.
"""

from skpref.data._builders import (
    as_table,
    from_choices,
    from_pairs,
    from_rankings,
    from_ratings,
    from_wins,
    gather,
    positions_of,
    ranking_groups,
    rated_pairs,
)
from skpref.data._columns import from_columns
from skpref.data._comparisons import (
    Answers,
    Comparisons,
    Duels,
    JointBlock,
    Margins,
    MeasuredValues,
    Rows,
    duel_rows,
    take_rows_with_items,
)
from skpref.data._containers import (
    all_strings,
    check_one_each,
    column_at,
    column_floats,
    column_names,
    fill_masked,
    is_frame,
    is_missing,
    name_ranks,
    object_array,
    plain_frame,
    shallow_copy,
    table_frame,
    take_rows,
)
from skpref.data._frame import DuelFrame, stack_sets
from skpref.data._groups import ItemGroups, check_groups_repeat, component_labels
from skpref.data._items import IdEncoder, ItemTable, distinct_rows, encode_ids, group_rows
from skpref.data._kinds import (
    DUEL,
    GRADED,
    INEQUALITY,
    LARGEST_LABEL,
    SET,
    TIE,
    DuelScale,
    check_kinds,
    first_wins,
)
from skpref.data._labels import (
    balance_orientation,
    check_order,
    check_outcomes,
    parse_outcomes,
    signed_labels,
)
from skpref.data._measured import LARGEST_VALUE, with_measured
from skpref.data._metadata import AnswerMetadata
from skpref.data._ranks import check_ranks, chosen_of, read_ranks
from skpref.data._read import ParsedX, Reader, check_finite, check_items, read
from skpref.data._respondents import Respondents, check_respondents
from skpref.data._sets import first_item_places, gather_features, number_consecutively
from skpref.data._soft import from_probabilities
from skpref.data._tables import open_table
from skpref.data._time import AnswerTimes, parse_time
from skpref.data._validation import (
    Training,
    check_training,
    combine_groups,
    continue_training,
    warn_index_labels,
)
from skpref.data._vote_columns import OWN_ANSWER, VoteOptions
from skpref.data._votes import read_votes
