package probe

// checkOwner says why the target is not ready although its probe passes: somebody else's program has
// one of its ports.
func (w *watch) checkOwner() error {
	if w.t.Owns == nil {
		return nil
	}
	w.mu.Lock()
	host := w.state.Host
	w.mu.Unlock()
	for _, number := range w.t.Ports {
		if err := w.t.Owns(host, number); err != nil {
			return err
		}
	}
	return nil
}
