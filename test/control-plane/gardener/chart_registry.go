package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const chartLayer types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// serveCharts serves folders with charts by their references, which name no host, from a registry in memory, and returns its host.
func serveCharts(folders map[string]string) (string, func(), error) {
	server := httptest.NewServer(registry.New())
	host := strings.TrimPrefix(server.URL, "http://")
	for reference, folder := range folders {
		if err := pushChart(host+"/"+reference, folder); err != nil {
			server.Close()
			return "", nil, fmt.Errorf("chart %s: %w", folder, err)
		}
	}
	return host, server.Close, nil
}

func pushChart(reference, folder string) error {
	archive, err := packChart(folder)
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, static.NewLayer(archive, chartLayer))
	if err != nil {
		return err
	}
	where, err := name.ParseReference(reference, name.StrictValidation)
	if err != nil {
		return err
	}
	return remote.Write(where, image)
}

// packChart is `helm package`.
func packChart(folder string) ([]byte, error) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	err := filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		within, err := filepath.Rel(filepath.Dir(folder), path)
		if err != nil {
			return err
		}
		if err := archive.WriteHeader(&tar.Header{Name: filepath.ToSlash(within), Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
