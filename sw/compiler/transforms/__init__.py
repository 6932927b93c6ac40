"""The compiler's passes, one in a file of the pass's name; ``PASSES`` lists them in the order of the
pipeline.
"""

PASSES = {
    "lower-emb": "lower_emb:LowerEmb",
    "functions-from-calls": "functions_from_calls:FunctionsFromCalls",
    "rows-from-scalars": "rows_from_scalars:RowsFromScalars",
    "promote-rows": "promote_rows:PromoteRows",
    "remove-empty-loops": "remove_empty_loops:RemoveEmptyLoops",
    "split-siblings": "split_siblings:SplitSiblings",
    "clamp-counts": "clamp_counts:ClampCounts",
    "hoist-invariants": "hoist_invariants:HoistInvariants",
    "convert-scf-to-slc": "convert_scf_to_slc:ConvertScfToSlc",
    "convert-slc-to-slcv": "convert_slc_to_slcv:ConvertSlcToSlcv",
    "expand-functions": "expand_functions:ExpandFunctions",
    "tile-columns": "tile_columns:TileColumns",
    "elide-initialization": "elide_initialization:ElideInitialization",
    "keep-invariant-rows": "keep_invariant_rows:KeepInvariantRows",
    "convert-slcv-to-dlc": "convert_slcv_to_dlc:ConvertSlcvToDlc",
}
"""Pass name -> module and class, imported when the pass is first used."""
