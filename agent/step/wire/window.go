package wire

// Window is the size of a terminal in characters.
type Window struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Pack is the number of a MsgResize.
func (w Window) Pack() int { return int(w.Rows)<<16 | int(w.Cols) }

// UnpackWindow reads the number of a MsgResize.
func UnpackWindow(n int) Window { return Window{Rows: uint16(uint32(n) >> 16), Cols: uint16(n)} } //nolint:gosec // its two halves
