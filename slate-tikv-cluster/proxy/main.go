// Forwards TCP connections and delays what passes: a network between clients and a process that all run on one machine. While the proxy is
// stopped (SIGSTOP), the process behind it is cut off without a notice. With certificates it also accepts TLS, which the nodes do not know, from
// clients that have a certificate of the same authority; the nodes go on to speak with each other without.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"log"
	"net"
	"os"
	"path/filepath"
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
	certificates := flag.String("tls", "", "folder with ca.pem, server.pem and server.key")
	flag.Parse()
	var config *tls.Config
	if *certificates != "" {
		config = secured(*certificates)
	}
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
			client := accepted(client, config)
			go forward(client, server, *delay/2)
			forward(server, client, *delay/2)
		}()
	}
}

func secured(folder string) *tls.Config {
	own, err := tls.LoadX509KeyPair(filepath.Join(folder, "server.pem"), filepath.Join(folder, "server.key"))
	if err != nil {
		log.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(folder, "ca.pem"))
	if err != nil {
		log.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(authority)
	return &tls.Config{
		Certificates: []tls.Certificate{own},
		ClientCAs:    clients,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		NextProtos:   []string{"h2"},
	}
}

// peeked is a connection whose first bytes are in a buffer.
type peeked struct {
	net.Conn
	buffer *bufio.Reader
}

func (p peeked) Read(bytes []byte) (int, error) { return p.buffer.Read(bytes) }

// accepted returns the connection as the process behind the proxy understands it. With TLS it begins with the type of a handshake.
func accepted(client net.Conn, config *tls.Config) net.Conn {
	if config == nil {
		return client
	}
	conn := peeked{client, bufio.NewReader(client)}
	if first, err := conn.buffer.Peek(1); err == nil && first[0] == 0x16 {
		return tls.Server(conn, config)
	}
	return conn
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
