package main

import (
	"io"
	"net"
	"sync"
)

// forwardPrograms connects the programs that arrive at the step's socket to the library's,
// which did not exist yet when the programs were told where to go.
func forwardPrograms(programs net.Listener, server string) {
	for {
		c, err := programs.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			s, err := net.Dial("tcp", server)
			if err != nil {
				return // the program sees its connection end
			}
			defer s.Close()
			joinConnections(c, s)
		}()
	}
}

// joinConnections copies in both directions until both have ended.
func joinConnections(a, b net.Conn) {
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			if t, ok := way[0].(*net.TCPConn); ok {
				_ = t.CloseWrite()
			}
		})
	}
	both.Wait()
}
