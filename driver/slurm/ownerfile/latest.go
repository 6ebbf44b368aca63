package ownerfile

import (
	"errors"
	"io"
)

// logFile is an open file.
type logFile interface {
	io.ReadCloser
	io.Seeker
}

// latestFile reads a file that another machine writes. Network file systems show what was
// written there to who opens the file after it was closed, and to who has it open only some
// time later: so at its end it is opened anew, and read on from there. A file that is gone by
// then, or has become shorter, has ended.
type latestFile struct {
	open func() (logFile, error)
	file logFile
	at   int64
}

// Read is io.Reader's.
func (l *latestFile) Read(p []byte) (int, error) {
	n, err := l.file.Read(p)
	if n > 0 || !errors.Is(err, io.EOF) {
		l.at += int64(n)
		return n, err
	}
	anew, oerr := l.open()
	if oerr != nil {
		return 0, io.EOF
	}
	if _, serr := anew.Seek(l.at, io.SeekStart); serr != nil {
		return 0, errors.Join(serr, anew.Close())
	}
	_ = l.file.Close()
	l.file = anew
	n, err = l.file.Read(p)
	l.at += int64(n)
	return n, err
}

// Close is io.Closer's.
func (l *latestFile) Close() error { return l.file.Close() }
