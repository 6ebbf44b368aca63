package fastclient

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// readHead reads a status line and headers.
func readHead(src *bufio.Reader) (*Response, error) {
	line, err := readLine(src)
	if err != nil {
		return nil, err
	}
	version, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if !strings.HasPrefix(version, "HTTP/1.") || err != nil || status < 100 {
		return nil, fmt.Errorf("%.40q is not an answer in HTTP", line)
	}
	r := &Response{Status: status, src: src, left: -1, close: version == "HTTP/1.0"}
	if err := r.readHeaders(); err != nil {
		return nil, err
	}
	if status < 200 && status != statusSwitching {
		return readHead(src) // 100 Continue and its like
	}
	switch {
	case status == 204 || status == 304 || r.left == 0:
		r.ended = true
	case r.left < 0 && !r.chunked:
		r.close = true
	}
	return r, nil
}

// readHeaders reads lines up to the empty one, of the head or of a trailer.
func (r *Response) readHeaders() error {
	for {
		line, err := readLine(r.src)
		if err != nil {
			return noEnd(err)
		}
		if line == "" {
			return nil
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(name) {
		case "content-length":
			if r.left, err = strconv.ParseInt(value, 10, 64); err != nil || r.left < 0 {
				return fmt.Errorf("content length %q", value)
			}
		case "content-type":
			media, _, _ := strings.Cut(value, ";")
			r.Media = strings.TrimSpace(media)
		case "transfer-encoding":
			r.chunked = strings.EqualFold(value, "chunked")
			r.left = 0
			if !r.chunked {
				return fmt.Errorf("transfer encoding %q", value)
			}
		case "connection":
			r.close = r.close || strings.EqualFold(value, "close")
		case "cox-log-end":
			r.End = value
		}
		if r.chunked {
			r.left = -1 // the first chunk's length comes with the body
		}
	}
}

func readLine(src *bufio.Reader) (string, error) {
	b, err := src.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			err = errors.New("a header is too long")
		}
		return "", err
	}
	return string(bytes.TrimRight(b, "\r\n")), nil
}

// Read reads the body.
func (r *Response) Read(p []byte) (int, error) {
	if r.ended {
		return 0, io.EOF
	}
	if r.chunked && r.left <= 0 {
		if err := r.nextChunk(); err != nil {
			return 0, err
		}
		if r.ended {
			return 0, io.EOF
		}
	}
	if r.left >= 0 && int64(len(p)) > r.left {
		p = p[:r.left]
	}
	n, err := r.src.Read(p)
	if r.left < 0 { // until the connection ends
		r.ended = errors.Is(err, io.EOF)
		return n, err
	}
	r.left -= int64(n)
	if err != nil {
		return n, noEnd(err)
	}
	if r.left == 0 {
		if !r.chunked {
			r.ended = true
		} else if _, err := readLine(r.src); err != nil {
			return n, noEnd(err)
		}
	}
	return n, nil
}

// nextChunk reads the length of the next chunk, and the trailer behind the last.
func (r *Response) nextChunk() error {
	line, err := readLine(r.src)
	if err != nil {
		return noEnd(err)
	}
	size, _, _ := strings.Cut(line, ";")
	if r.left, err = strconv.ParseInt(strings.TrimSpace(size), 16, 64); err != nil || r.left < 0 {
		return fmt.Errorf("chunk of length %.20q", line)
	}
	if r.left == 0 {
		r.ended = true
		return r.readHeaders()
	}
	return nil
}

// noEnd makes of the end of the connection inside of an answer an error.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// All reads the rest of the body.
func (r *Response) All() ([]byte, error) {
	if !r.chunked && r.left > 0 && r.left < 64<<20 {
		b := make([]byte, r.left)
		_, err := io.ReadFull(r, b)
		return b, err
	}
	return io.ReadAll(r)
}
