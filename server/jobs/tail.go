package jobs

import (
	"bytes"
	"errors"
	"io"
)

// tailMost is how much of a log is looked at for its last lines.
const tailMost = 64 << 20

// tailLines leaves of what r holds now the last n lines, which begin with the byte from: they are
// returned, or what r gives next. It costs as much as it reads: a file is read backwards up to its nth
// last line and kept nowhere, anything else is read through once.
func tailLines(r io.Reader, n int) (last []byte, from int64, err error) {
	if f, ok := r.(interface {
		io.Reader
		io.ReaderAt
		io.Seeker
	}); ok {
		size, err := f.Seek(0, io.SeekEnd)
		if err == nil {
			from, err := lineFromEnd(f, size, n)
			if err != nil {
				return nil, 0, err
			}
			_, err = f.Seek(from, io.SeekStart)
			return nil, from, err
		}
	}
	count := &countingReader{r: r}
	last, err = readTail(count, n)
	return last, count.n - int64(len(last)), err
}

// skipBytes leaves out the first n bytes, or all that r holds now: at is how many.
func skipBytes(r io.Reader, n int64) (at int64, err error) {
	if f, ok := r.(io.Seeker); ok {
		if size, err := f.Seek(0, io.SeekEnd); err == nil {
			return f.Seek(min(n, size), io.SeekStart)
		}
	}
	at, err = io.CopyN(io.Discard, r, n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return at, err
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// lineFromEnd is where the nth last line begins of a file with so many bytes, or where
// no more is looked at.
func lineFromEnd(f io.ReaderAt, size int64, n int) (int64, error) {
	buf := make([]byte, 64<<10)
	for at := size; at > max(0, size-tailMost); {
		part := buf[:min(int64(len(buf)), at)]
		at -= int64(len(part))
		got, err := f.ReadAt(part, at)
		if got < len(part) {
			if errors.Is(err, io.EOF) {
				return 0, nil // it was cut meanwhile
			}
			return 0, err
		}
		end := len(part)
		if at+int64(end) == size && part[end-1] == '\n' {
			end-- // the end of the last line is none before it
		}
		for i := bytes.LastIndexByte(part[:end], '\n'); i >= 0; i = bytes.LastIndexByte(part[:i], '\n') {
			if n--; n == 0 {
				return at + int64(i) + 1, nil
			}
		}
	}
	return max(0, size-tailMost), nil
}

// readTail reads to the present end and returns the last n lines. What is kept is cut
// only when it has doubled, so that each byte is moved a few times at most.
func readTail(r io.Reader, n int) ([]byte, error) {
	var kept []byte
	buf := make([]byte, 64<<10)
	for cut := 1 << 20; ; {
		m, err := r.Read(buf)
		kept = append(kept, buf[:m]...)
		if len(kept) > cut {
			kept = append([]byte(nil), lastLines(kept, n)...)
			cut = 2*len(kept) + 1<<20
		}
		if err == io.EOF {
			return lastLines(kept, n), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func lastLines(b []byte, n int) []byte {
	b = b[max(0, len(b)-tailMost):]
	from, err := lineFromEnd(bytes.NewReader(b), int64(len(b)), n)
	if err != nil {
		return b // memory is read without errors
	}
	return b[from:]
}
