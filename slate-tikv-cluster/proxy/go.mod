module slate.tests/proxy

go 1.21
