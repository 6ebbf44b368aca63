package container

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// request asks the init for a process. Words and variables may hold any bytes, which texts of
// JSON may not.
type request struct {
	ID       int      `json:"id"`
	Path     []byte   `json:"path"`
	Args     [][]byte `json:"args"`
	Env      [][]byte `json:"env"`
	Dir      []byte   `json:"dir,omitempty"`
	Terminal bool     `json:"terminal,omitempty"` // its standard input is its terminal
	Files    int      `json:"files"`              // that come with it
}

// answer is what the init says: of itself first, then that a process began or could not, and that
// one ended.
type answer struct {
	Hello *hello `json:"hello,omitempty"`
	ID    int    `json:"id,omitempty"`
	Files int    `json:"files,omitempty"` // 1: a descriptor of the process comes with it
	Errno int    `json:"errno,omitempty"` // why it could not begin
	Text  string `json:"text,omitempty"`

	Ended  bool `json:"ended,omitempty"`
	Status int  `json:"status,omitempty"`
	Signal int  `json:"signal,omitempty"`

	Used *unix.Rusage `json:"used,omitempty"` // of one that ended
}

// hello is what the init says of the container.
type hello struct {
	Version int      `json:"version"`
	Env     [][]byte `json:"env"`
	Dir     []byte   `json:"dir"`
}

// protocol is the version of these messages. Both ends are of one binary, unless it was replaced
// meanwhile.
const protocol = 1

const (
	mostFiles = 64
	mostBytes = 16 << 20
)

// sendFrame writes a message, and open files with it.
func sendFrame(c *net.UnixConn, v any, files []*os.File) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(text) > mostBytes {
		return fmt.Errorf("%d bytes are too many for a container", len(text))
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	if _, _, err := c.WriteMsgUnix(binary.BigEndian.AppendUint32(nil, uint32(len(text))), rights, nil); err != nil {
		return err
	}
	_, err = c.Write(text)
	return err
}

// receiveFrame reads a message, and the open files that came with it.
func receiveFrame(c *net.UnixConn, v any) ([]*os.File, error) {
	var size [4]byte
	oob := make([]byte, unix.CmsgSpace(4*mostFiles))
	n, have, _, _, err := c.ReadMsgUnix(size[:], oob)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	files, err := takeFiles(oob[:have])
	if err == nil && n < len(size) {
		_, err = io.ReadFull(c, size[n:])
	}
	length := binary.BigEndian.Uint32(size[:])
	if err == nil && length > mostBytes {
		err = errors.New("a message is too long")
	}
	if err == nil {
		text := make([]byte, length)
		if _, err = io.ReadFull(c, text); err == nil {
			err = json.Unmarshal(text, v)
		}
	}
	if err != nil {
		closeFiles(files)
		return nil, err
	}
	return files, nil
}

// takeFiles are the open files in the control part of a message.
func takeFiles(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			closeFiles(files)
			return nil, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "handed over"))
		}
	}
	return files, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// toBytes makes bytes of texts.
func toBytes(texts []string) [][]byte {
	out := make([][]byte, len(texts))
	for i, t := range texts {
		out[i] = []byte(t)
	}
	return out
}

// toTexts makes texts of bytes.
func toTexts(bytes [][]byte) []string {
	out := make([]string, len(bytes))
	for i, b := range bytes {
		out[i] = string(b)
	}
	return out
}
