// Forwards TCP connections and delays what passes: a network between clients and a process that all run on one machine. While the proxy is
// stopped (SIGSTOP), the process behind it is cut off without a notice.
package main

import (
	"flag"
	"log"
	"net"
	"time"
)

type part struct {
	due   time.Time
	bytes []byte
}

func main() {
	listen := flag.String("listen", "", "address to listen on")
	to := flag.String("to", "", "address to forward to")
	delay := flag.Duration("delay", 0, "the time that a round trip takes longer")
	flag.Parse()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	for {
		client, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			server, err := net.Dial("tcp", *to)
			if err != nil {
				client.Close()
				return
			}
			go forward(client, server, *delay/2)
			forward(server, client, *delay/2)
		}()
	}
}

// forward copies bytes in their order, each part after a delay; parts do not wait for each other.
func forward(from, to net.Conn, delay time.Duration) {
	parts := make(chan part, 1024)
	go func() {
		defer close(parts)
		for {
			bytes := make([]byte, 32<<10)
			n, err := from.Read(bytes)
			if n > 0 {
				parts <- part{time.Now().Add(delay), bytes[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range parts {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			break
		}
	}
	from.Close()
	to.Close()
	for range parts {
	}
}
