package local

// Closed reports whether the engine was closed.
func (e *Engine) Closed() bool { return e.ctx.Err() != nil }
