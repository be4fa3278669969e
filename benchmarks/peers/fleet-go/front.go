package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"time"
)

// front serves HTTP/2 for each address, and passes the requests on with HTTP/1.1. It says the addresses where it
// listens, and ends with its input.
func front(addresses []address) error {
	found := make([]address, len(addresses))
	for number, each := range addresses {
		target, err := url.Parse(each.URL)
		if err != nil {
			return err
		}
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM([]byte(each.CA))
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.FlushInterval = -1
		proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}
		proxy.ErrorLog = log.New(io.Discard, "", 0)
		pair, certificate, err := newPair()
		if err != nil {
			return err
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		served := &http.Server{
			Handler:   proxy,
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
			ErrorLog:  proxy.ErrorLog,
		}
		go func() { _ = served.ServeTLS(listener, "", "") }() // it ends with the process
		found[number] = address{"https://" + listener.Addr().String(), certificate}
	}
	say(found)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// newPair returns a certificate for 127.0.0.1 that is its own authority, and its PEM.
func newPair() (tls.Certificate, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: "127.0.0.1"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(24 * time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	pair := tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}
	return pair, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})), nil
}
