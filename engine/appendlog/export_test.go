package appendlog

import "os"

// Lock is what Open does with a file that it has opened.
var Lock = tryLock

// Swap has another open file take the place of the file's own, which it returns.
func (f *File) Swap(by *os.File) *os.File {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.f
	f.f = by
	return was
}
