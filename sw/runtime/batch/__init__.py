"""Several pooling operations in one launch: the plan, and the fast path of batches like the last one."""
