"""What passes build IR with: pooling loops, callbacks, plain loops."""
