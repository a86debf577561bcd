//! A small RPKI that is valid: a trust anchor with its list of revoked certificates, its manifest and ROAs, signed
//! here.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use fibula_core::AnyPrefix;
use fibula_rpki::Vrp;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use rpki::crypto::keys::{PublicKey, PublicKeyFormat};
use rpki::crypto::signer::{KeyError, Signer, SigningError};
use rpki::crypto::{DigestAlgorithm, RpkiSignatureAlgorithm, Signature, SignatureAlgorithm};
use rpki::repository::cert::{KeyUsage, Overclaim, TbsCert};
use rpki::repository::crl::TbsCertList;
use rpki::repository::manifest::{FileAndHash, ManifestContent};
use rpki::repository::resources::{Asn, Prefix};
use rpki::repository::roa::RoaBuilder;
use rpki::repository::sigobj::SignedObjectBuilder;
use rpki::repository::x509::{Serial, Time, Validity};
use rpki::uri::Rsync;
use rpki::util::base64::Xml;

/// The host of the trust anchor, which nobody asks.
const HOST: &str = "rsync://rpki.test/";
const DAY: i64 = 86_400;

/// Keys, which the command `openssl` makes: no library that is here already makes those of RSA.
struct Keys(SystemRandom);

#[derive(Debug)]
struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn public(key: &RsaKeyPair) -> PublicKey {
    PublicKey::rsa_from_bits_bytes(key.public_key().as_ref().to_vec().into()).unwrap()
}

impl Signer for Keys {
    type KeyId = RsaKeyPair;
    type Error = Refused;

    fn create_key(&self, _: PublicKeyFormat) -> Result<RsaKeyPair, Refused> {
        let mut openssl = Command::new("openssl");
        openssl.args(["genpkey", "-algorithm", "RSA", "-outform", "DER"]);
        let made = openssl.args(["-pkeyopt", "rsa_keygen_bits:2048"]).output();
        let made = made.map_err(|error| Refused(format!("openssl: {error}")))?.stdout;
        // openssl 3.0 writes the key alone, and others PKCS #8.
        let read = RsaKeyPair::from_der(&made).or_else(|_| RsaKeyPair::from_pkcs8(&made));
        read.map_err(|error| Refused(format!("openssl genpkey: {error}")))
    }

    fn get_key_info(&self, key: &RsaKeyPair) -> Result<PublicKey, KeyError<Refused>> {
        Ok(public(key))
    }

    fn destroy_key(&self, _: &RsaKeyPair) -> Result<(), KeyError<Refused>> {
        Ok(())
    }

    fn sign<Alg: SignatureAlgorithm, D: AsRef<[u8]> + ?Sized>(
        &self,
        key: &RsaKeyPair,
        algorithm: Alg,
        data: &D,
    ) -> Result<Signature<Alg>, SigningError<Refused>> {
        let mut signature = vec![0; key.public().modulus_len()];
        let signed = key.sign(&RSA_PKCS1_SHA256, &self.0, data.as_ref(), &mut signature);
        signed.map_err(|error| Refused(error.to_string()))?;
        Ok(Signature::new(algorithm, signature.into()))
    }

    fn sign_one_off<Alg: SignatureAlgorithm, D: AsRef<[u8]> + ?Sized>(
        &self,
        algorithm: Alg,
        data: &D,
    ) -> Result<(Signature<Alg>, PublicKey), Refused> {
        let key = self.create_key(algorithm.public_key_format())?;
        let signature =
            self.sign(&key, algorithm, data).map_err(|error| Refused(error.to_string()))?;
        Ok((signature, public(&key)))
    }

    fn rand(&self, target: &mut [u8]) -> Result<(), Refused> {
        self.0.fill(target).map_err(|error| Refused(error.to_string()))
    }
}

/// A trust anchor and what it publishes, as a validator that works offline finds it.
pub(crate) struct Repository {
    /// What the validator has of rsync, a folder for each host.
    files: PathBuf,
    keys: Keys,
    key: RsaKeyPair,
    numbers: AtomicU64,
}

impl Repository {
    /// Writes the trust anchor into the folder `files`, and its locator as the file `tal`.
    pub(crate) fn new(files: PathBuf, tal: &Path) -> Self {
        let keys = Keys(SystemRandom::new());
        let key = keys.create_key(PublicKeyFormat::Rsa).unwrap();
        let this = Self { files, keys, key, numbers: AtomicU64::new(1) };
        let key = public(&this.key);
        let locator = format!("{HOST}ta/ta.cer\n\n{}\n", Xml.encode(&key.to_info_bytes()));
        fs::write(tal, locator).unwrap();
        let mut anchor = TbsCert::new(
            this.number(),
            key.to_subject_name(),
            Validity::from_secs(DAY),
            None,
            key,
            KeyUsage::Ca,
            Overclaim::Refuse,
        );
        anchor.set_basic_ca(Some(true));
        anchor.set_ca_repository(Some(uri("repo/")));
        anchor.set_rpki_manifest(Some(uri("repo/ta.mft")));
        anchor.build_v4_resource_blocks(|blocks| blocks.push(Prefix::new(0, 0)));
        anchor.build_v6_resource_blocks(|blocks| blocks.push(Prefix::new(0, 0)));
        anchor.build_as_resource_blocks(|blocks| blocks.push((Asn::MIN, Asn::MAX)));
        let anchor = anchor.into_cert(&this.keys, &this.key).unwrap();
        this.write("ta/ta.cer", anchor.to_captured().as_slice());
        this
    }

    fn number(&self) -> Serial {
        self.numbers.fetch_add(1, Ordering::Relaxed).into()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let file = self.files.join("rpki.test").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }

    fn object(&self, name: &str) -> SignedObjectBuilder {
        let validity = Validity::from_secs(DAY);
        let name = uri(&format!("repo/{name}"));
        SignedObjectBuilder::new(
            self.number(),
            validity,
            uri("repo/ta.crl"),
            uri("ta/ta.cer"),
            name,
        )
    }

    /// Publishes these VRPs, a ROA each, in the place of those before.
    pub(crate) fn publish(&self, vrps: &[Vrp]) {
        let key = public(&self.key);
        let revoked = TbsCertList::new(
            RpkiSignatureAlgorithm::default(),
            key.to_subject_name(),
            Time::now(),
            Time::tomorrow(),
            vec![],
            key.key_identifier(),
            self.number(),
        );
        let revoked = revoked.into_crl(&self.keys, &self.key).unwrap().to_captured();
        let mut files = vec![("ta.crl".to_owned(), revoked.as_slice().to_vec())];
        for (at, vrp) in vrps.iter().enumerate() {
            let name = format!("{at}.roa");
            let mut roa = RoaBuilder::new(vrp.asn().into());
            match vrp.prefix() {
                AnyPrefix::V4(prefix) => {
                    roa.push_v4_addr(prefix.addr().into(), prefix.len(), Some(vrp.max_len()));
                }
                AnyPrefix::V6(prefix) => {
                    roa.push_v6_addr(prefix.addr().into(), prefix.len(), Some(vrp.max_len()));
                }
            }
            let roa = roa.finalize(self.object(&name), &self.keys, &self.key).unwrap();
            files.push((name, roa.to_captured().as_slice().to_vec()));
        }
        let digest = DigestAlgorithm::default();
        let list: Vec<_> = files
            .iter()
            .map(|(name, bytes)| FileAndHash::new(name.as_bytes(), digest.digest(bytes)))
            .collect();
        let manifest =
            ManifestContent::new(self.number(), Time::now(), Time::tomorrow(), digest, list.iter());
        let manifest =
            manifest.into_manifest(self.object("ta.mft"), &self.keys, &self.key).unwrap();
        files.push(("ta.mft".to_owned(), manifest.to_captured().as_slice().to_vec()));
        files.iter().for_each(|(name, bytes)| self.write(&format!("repo/{name}"), bytes));
    }
}

fn uri(path: &str) -> Rsync {
    format!("{HOST}{path}").parse().unwrap()
}
