//! Certificates: servers make their own, and clients know them by their fingerprint.
//!
//! 0-RTT must stay off, as it is by default: the module `handshake` says why.

use ring::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as provider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use std::fmt::Write;
use std::sync::Arc;

/// Name of HTTP/3 in the handshake (RFC 9114 section 3.1).
pub const ALPN: &[u8] = b"h3";

/// The servers that a client accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The certificate whose SHA-256, in hexadecimal digits, this is.
    Fingerprint(String),
    /// Any certificate: the server may be anybody.
    Anybody,
}

/// Returns a certificate's SHA-256 in hexadecimal digits.
#[must_use]
pub fn fingerprint(certificate: &[u8]) -> String {
    digest(&SHA256, certificate).as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Makes a certificate and a server's side of TLS. Returns the fingerprint too.
///
/// # Errors
///
/// The system has no randomness.
pub fn server() -> anyhow::Result<(rustls::ServerConfig, String)> {
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let certificate = own.cert.der().clone();
    let told = fingerprint(&certificate);
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok((config, told))
}

/// A client's side of TLS.
///
/// # Errors
///
/// None are known.
pub fn client(trust: Trust) -> anyhow::Result<rustls::ClientConfig> {
    let own = Arc::new(provider::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::clone(&own))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { trust, provider: own }))
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(config)
}

#[derive(Debug)]
struct Verifier {
    trust: Trust,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.trust {
            Trust::Fingerprint(known) if !known.eq_ignore_ascii_case(&fingerprint(certificate)) => {
                Err(CertificateError::ApplicationVerificationFailure.into())
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
