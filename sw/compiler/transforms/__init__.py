"""The compiler's passes, one in a file of the pass's name; ``PASSES`` lists them in the order of the
pipeline.
"""

PASSES = {
    "lower-emb": "lowering.lower_emb:LowerEmb",
    "functions-from-calls": "lowering.functions_from_calls:FunctionsFromCalls",
    "promote-scalars": "promote_scalars:PromoteScalars",
    "promote-rows": "promote_rows:PromoteRows",
    "remove-empty-loops": "remove_empty_loops:RemoveEmptyLoops",
    "join-sibling-loops": "join_sibling_loops:JoinSiblingLoops",
    "loop-distribution": "loop_distribution:LoopDistribution",
    "clamp-counts": "clamp_counts:ClampCounts",
    "loop-invariant-code-motion": "loop_invariant_code_motion:LoopInvariantCodeMotion",
    "convert-scf-to-slc": "lowering.convert_scf_to_slc:ConvertScfToSlc",
    "convert-slc-to-slcv": "lowering.convert_slc_to_slcv:ConvertSlcToSlcv",
    "expand-functions": "lowering.expand_functions:ExpandFunctions",
    "tile-columns": "tile_columns:TileColumns",
    "elide-initialization": "elide_initialization:ElideInitialization",
    "keep-invariant-rows": "keep_invariant_rows:KeepInvariantRows",
    "convert-slcv-to-dlc": "lowering.convert_slcv_to_dlc:ConvertSlcvToDlc",
    "allocate-stream-registers": "allocate_stream_registers:AllocateStreamRegisters",
}
"""Pass name -> module and class, imported when the pass is first used."""
