package sqlite

// OpenPacked opens a store that puts every blob into a pack.
func OpenPacked(dir string) (*Store, error) {
	s, err := Open(dir)
	if err == nil {
		s.blobs.small = -1
	}
	return s, err
}
