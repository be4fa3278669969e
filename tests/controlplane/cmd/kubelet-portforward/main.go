// kubelet-portforward serves the port forwarding of a kubelet, with the kubelet's own library, for Pods that are processes of this machine.
//
// A Pod of the tests has no network of its own. `-pod NAME=HOST:PORT` gives the address behind every port of one Pod; the ports of other
// Pods are those of 127.0.0.1. The program prints the port that it serves, on 127.0.0.1, and ends with its standard input.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

// As a kubelet has them: streamingConnectionIdleTimeout, and remotecommand.DefaultStreamCreationTimeout.
const (
	idleTimeout     = 4 * time.Hour
	creationTimeout = 30 * time.Second
)

// addresses has the address of a Pod by its name.
type addresses map[string]string

func (a addresses) String() string { return "" }

func (a addresses) Set(text string) error {
	name, address, found := strings.Cut(text, "=")
	if !found {
		return fmt.Errorf("expected NAME=HOST:PORT, got %q", text)
	}
	a[name] = address
	return nil
}

// PortForward is what a container runtime does: connect inside of the Pod, and copy.
func (a addresses) PortForward(_ context.Context, name, _ string, port int32, stream io.ReadWriteCloser) error {
	address, found := a[name]
	if !found {
		address = fmt.Sprintf("127.0.0.1:%d", port)
	}
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return fmt.Errorf("failed to connect to localhost:%d inside namespace of pod %s: %w", port, name, err)
	}
	defer connection.Close()
	go io.Copy(connection, stream)
	_, err = io.Copy(stream, connection)
	return err
}

func (a addresses) serve(w http.ResponseWriter, req *http.Request) {
	options, err := portforward.NewV4Options(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(
		w, req, a, req.PathValue("pod"), req.PathValue("uid"), options, idleTimeout, creationTimeout, portforward.SupportedProtocols,
	)
}

func main() {
	pods := addresses{}
	flag.Var(pods, "pod", "NAME=HOST:PORT of a Pod; repeatable")
	flag.Parse()

	mux := http.NewServeMux()
	mux.HandleFunc("/portForward/{namespace}/{pod}", pods.serve)
	mux.HandleFunc("/portForward/{namespace}/{pod}/{uid}", pods.serve)
	server := httptest.NewUnstartedServer(mux)
	server.StartTLS()
	fmt.Println(server.Listener.Addr().(*net.TCPAddr).Port)
	io.Copy(io.Discard, os.Stdin)
}
